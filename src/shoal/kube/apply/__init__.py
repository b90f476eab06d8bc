"""Server-side apply, and the ownership of fields that every write keeps.

server_side.py     `apply`, `track` and `check`
merge.py           the merge of two objects by the kind of their fields
managed_fields.py  the managers of an object and what they own
client_side.py     what `kubectl apply` without --server-side left behind
"""

from shoal.kube.apply.server_side import apply, check, track

__all__ = ["apply", "check", "track"]
