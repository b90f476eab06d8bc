"""What people type. Each command lives in a module of its own and imports what it needs when it runs."""

from __future__ import annotations


def main() -> None:
    from shoal.cli.main import shoal

    shoal()
