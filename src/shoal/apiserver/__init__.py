"""HTTP front end of the embedded store, in the Kubernetes wire protocol.

`app` handles one request; `server` puts it on a socket; `kubeconfig` writes the file that gives kubectl access.
Validity of objects is not decided here: that is the store's machinery.
"""
