"""The HTTP face of the embedded store, in the Kubernetes wire protocol.

`app` tells the story of one request; `serving` puts it on a socket; `kubeconfig` writes the file that lets
kubectl in. Nothing here decides what an object may be: that is the store's machinery.
"""
