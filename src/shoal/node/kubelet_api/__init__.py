"""What an API server asks of a node itself: the logs of its containers and commands in them.

A node that joined a real cluster answers where a kubelet would, on a port its Node object names. `serving` holds the
paths, `callers` says who may use them. Nobody is trusted by his address: a caller shows a client certificate of the
cluster or a token, and the cluster's own authorization decides.
"""
