"""Looking a name up in a hosts file, as the programs that see it would."""

from __future__ import annotations


def look_up_host(hosts_file: str, name: str) -> str | None:
    """The first address of a name; None where the file does not have it."""
    try:
        with open(hosts_file, encoding="utf-8", errors="replace") as file:
            for line in file:
                address, *names = line.partition("#")[0].split() or [""]
                if name.lower() in (known.lower() for known in names):
                    return address
    except OSError:
        return None
    return None
