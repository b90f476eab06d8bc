"""What people type. Each command lives in a module of its own and imports what it needs when it runs."""

from __future__ import annotations

# `signal` itself imports enum and functools first; until SIGINT has its default action, Ctrl-C shows a traceback.
import _signal as signal  # type: ignore[import-not-found]
import gc
import os
import sys


def main() -> None:
    # it is not where Ctrl-C is ignored
    handles_interrupt = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if handles_interrupt:
        # Nothing is begun yet that would have to be ended: an early Ctrl-C ends the process and shows no trace.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    open_missing_streams()
    # Modules are loaded and stay: collecting garbage meanwhile costs a twentieth of a short command's time.
    gc.set_threshold(100_000)
    from shoal.cli.main import HANDLES_INTERRUPTS, shoal

    try:
        shoal(obj=HANDLES_INTERRUPTS if handles_interrupt else None)
    except OSError as failed:
        sys.exit(f"Error: {describe_os_error(failed)}")
    finally:
        discard_unwritable_output()


def describe_os_error(failed: OSError) -> str:
    """What the system refused, such as a full disk, or standard output on one."""
    why = failed.strerror or str(failed)
    return f"{failed.filename}: {why}." if failed.filename else f"a file or the output cannot be written: {why}."


def open_missing_streams() -> None:
    """Open the standard streams that the process was started without (`shoal get >&-`).
    Otherwise a file or connection gets their numbers. Standard output then cannot be written, which ends the command
    with an error message."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            flags = os.O_WRONLY if number == 2 else os.O_RDONLY
            descriptor = os.open(os.devnull, flags)
            if descriptor != number:
                os.dup2(descriptor, number)
                os.close(descriptor)
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115 - a descriptor, for good


def discard_unwritable_output() -> None:
    """Send what standard output does not accept to /dev/null: Python would retry it at its end, with a traceback."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (AttributeError, ValueError):
        pass  # there is no standard output, or it is closed
