"""A token in a file that others renew: a service account's, or one that a login program keeps fresh."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from shoal.cluster.kubeconfig.connection_config import ConnectionConfigError, RequestCredentials


def bearer_header(token: str) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {token}"}


def is_token(text: str) -> bool:
    """Whether it can be sent in a header: line breaks would be headers of their own."""
    return re.fullmatch(r"[ -~]+", text) is not None


class TokenFile:
    """Read again when the file has changed, which costs one stat per request, and when the token was not accepted."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._signature: tuple[int, int, int] | None = None
        self._credentials = RequestCredentials()

    def cached(self) -> RequestCredentials:
        try:
            found = self._path.stat()
            signature = (found.st_ino, found.st_mtime_ns, found.st_size)
            if self._signature == signature:
                return self._credentials
            token = self._path.read_text().strip()
        except (OSError, UnicodeDecodeError) as problem:
            reason = problem.strerror if isinstance(problem, OSError) else problem
            message = f"the token file {self._path} cannot be read: {reason}; have it written again"
            raise ConnectionConfigError(message) from None
        if not is_token(token):
            what = "holds more than a token" if token else "is empty"
            raise ConnectionConfigError(f"the token file {self._path} {what}; have it written again")
        self._credentials = RequestCredentials(bearer_header(token))
        self._signature = signature  # taken before the reading: a change in between is seen the next time
        return self._credentials

    def fetch(self) -> RequestCredentials:
        self._signature = None
        return self.cached()
