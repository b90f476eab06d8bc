"""How to reach an API server: what a kubeconfig or a pod's service account says, ready for any HTTP client.

`kubeconfig` reads the files people have, `pods` what a cluster gives its pods, `plugins` runs the programs that fetch
credentials, `trusting` knows the server and shows our certificate. The result is a `Connection`. Nothing here opens
one, so a program that brings its own HTTP client can use it as well.
"""

from shoal.cluster.kubeconfig.connection import FIXED, Connection, Credentials, NoConnection, Shown
from shoal.cluster.kubeconfig.contexts import contexts, from_kubeconfig, usual_files, why_no_address
from shoal.cluster.kubeconfig.in_cluster import in_cluster

__all__ = [
    "FIXED",
    "Connection",
    "Credentials",
    "NoConnection",
    "Shown",
    "contexts",
    "from_kubeconfig",
    "in_cluster",
    "usual_files",
    "why_no_address",
]
