"""What people type. Each command lives in a module of its own and imports what it needs when it runs."""

from __future__ import annotations

import signal


def main() -> None:
    is_heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # it is not where somebody ignores Ctrl-C
    if is_heard:
        # Nothing is begun yet that would have to be ended: an early Ctrl-C ends the process and shows no trace.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from shoal.cli.main import HEARS_INTERRUPTS, shoal

    shoal(obj=HEARS_INTERRUPTS if is_heard else None)
