"""What an API server requests from a node itself: the logs of its containers and commands in them.

A node that joined a real cluster serves them where a kubelet would, on a port its Node object names. `server` holds
the paths, `authorization` decides who may use them. No address is trusted: a caller shows a client certificate of the
cluster or a token, and the cluster's own authorization decides.
"""
