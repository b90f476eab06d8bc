"""The adapter for any API server: the interface's verbs, and those only a real cluster has, as HTTP requests.

`http_client` has the verbs; `list_watch` reads streams of changes; `transport` sends one request for as long as that
makes sense, by the rules of `api_request`, at the pace `flow_control` finds the server can bear; `failures` turns
errors into messages. Objects stay dictionaries. What the client decodes may be less than the server holds
(`field_decoders`), so nothing is ever written back whole: it sends only creations, patches and applications.
"""

from shoal.cluster.kubernetes.failures import Unreachable
from shoal.cluster.kubernetes.http_client import KubernetesCluster, open_client
from shoal.cluster.kubernetes.transport import TransportSettings
from shoal.cluster.kubernetes.url_paths import path_of

__all__ = ["KubernetesCluster", "TransportSettings", "Unreachable", "open_client", "path_of"]
