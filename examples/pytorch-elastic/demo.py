"""The elastic training on this machine: starts with 4 workers, continues with 2, then with 3, and succeeds.

    make demo

Every command is printed before it runs, so that it can be repeated by hand, also in another terminal at the same time.
Progress is read from the log of worker-0, which runs from start to end; no step waits by the clock. At the end it
plots the training's speed and size.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import picture

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
METRICS = HERE / "workspace" / "out" / "metrics.jsonl"
PICTURE = ROOT / "out" / "elastic.png"
SIZES = [4, 2, 3]
MOST_SECONDS = 900  # ends a training that hangs

PACE = re.compile(r"^Epoch: \[(\d+)\]\[ *(\d+)/(\d+)\].*\tLoss (\S+) ")
GROUP = re.compile(r"^=> rank \d+ of world size (\d+)")
CHANGE = re.compile(r"will restart worker group")
RESUME = re.compile(r"^=> resuming epoch (\d+) at step (\d+)")
RESULT = re.compile(r"^ \* Acc@1 (\S+) ")


class Failed(Exception):
    """The demo cannot continue; the message has the reason and where to look."""


class Stage:
    """Runs commands against one cluster and prints them."""

    def __init__(self, folder: str) -> None:
        here = Path(sys.executable).parent
        self.env = {**os.environ, "PATH": f"{here}:{os.environ['PATH']}", "SHOAL_DATA": folder}
        self.env.pop("SHOAL_CONFIG", None)  # use ./shoal.yaml
        self.began = time.monotonic()

    def type(self, command: str, *, shown: bool = True) -> None:
        self.show(command)
        output = None if shown else subprocess.DEVNULL
        ended = subprocess.run(shlex.split(command), env=self.env, cwd=HERE, stdout=output)
        if ended.returncode:
            raise Failed(f"`{command}` ended with code {ended.returncode}; what it said is above.")

    @contextmanager
    def reading(self, command: str) -> Iterator[Iterable[str]]:
        """Stream the lines a command prints; the command ends with the `with` block."""
        self.show(f"{command}  # in short")
        words = shlex.split(command)
        with subprocess.Popen(words, env=self.env, cwd=HERE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                yield (line.rstrip("\n") for line in process.stdout)
            finally:
                process.terminate()

    def show(self, command: str) -> None:
        bold, plain = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("", "")
        print(f"\n{bold}$ {command}{plain}", flush=True)

    def tell(self, sentence: str) -> None:
        print(f"  {time.monotonic() - self.began:4.0f} s  {sentence}", flush=True)


class Digest:
    """Summary of a worker's log."""

    def __init__(self) -> None:
        self._workers = 0

    def of(self, line: str) -> str | None:
        """The summary of this line, if any."""
        if group := GROUP.search(line):
            self._workers = int(group[1])
            return f"{self._workers} workers joined"
        if pace := PACE.search(line):
            epoch, step, steps, loss = pace.groups()
            return f"{self._workers} workers, epoch {epoch}, step {step:>2} of {steps}: loss {float(loss):.4f}"
        if CHANGE.search(line):
            return "the group changes"
        if resumed := RESUME.search(line):
            return f"training continues in epoch {resumed[1]} at step {resumed[2]}"
        if result := RESULT.search(line):
            return f"validation accuracy {float(result[1]):.1f} %"
        return None


class Log:
    """Follow worker-0's log and print its summary."""

    def __init__(self, stage: Stage, lines: Iterable[str]) -> None:
        self._stage = stage
        self._lines = iter(lines)
        self._digest = Digest()

    def until(self, pattern: str, meaning: str) -> None:
        for line in self._lines:
            self._tell(line)
            if re.search(pattern, line):
                return
        raise Failed(f"pet ended before {meaning}; its story is above.")

    def end(self) -> None:
        for line in self._lines:
            self._tell(line)

    def _tell(self, line: str) -> None:
        if sentence := self._digest.of(line):
            self._stage.tell(sentence)


def train(stage: Stage) -> None:
    """4 → 2 → 3, each step as soon as the log shows that the previous one is done. The first is early, so that a third
    worker that starts slowly still joins the training."""
    with stage.reading("shoal logs -f pet worker-0") as lines:
        log = Log(stage, lines)
        log.until(r"^Epoch: \[0\]\[ *20/", "half of its first epoch was over")
        stage.type("shoal scale pet worker=2")
        log.until(r"of world size 2$", "two workers had met")
        for _ in range(2):
            log.until(PACE.pattern, "two workers had learnt a little")
        stage.type("shoal scale pet worker=3")
        log.end()


def draw(stage: Stage) -> None:
    """Draw the picture and verify that the group had these sizes."""
    steps = picture.read(METRICS.read_text().splitlines())
    sizes = [workers for _, workers in picture.worlds(steps)[:-1]]
    if sizes != SIZES:
        raise Failed(f"the training succeeded, but with {sizes} workers where {SIZES} were meant. Try once more.")
    PICTURE.parent.mkdir(exist_ok=True)
    stage.type(f"environment/bin/python picture.py {METRICS.relative_to(HERE)} {PICTURE}")


def give_up(*_: object) -> None:
    raise Failed(f"the training is not over after {MOST_SECONDS} s; its story is above.")


def play(stage: Stage) -> None:
    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(MOST_SECONDS)
    stage.type("shoal up --detach")
    stage.type("shoal submit pet.yaml")
    try:
        train(stage)
    finally:
        stage.type("shoal describe pet")
    stage.type("shoal wait pet")
    draw(stage)


def main() -> None:
    prepared = subprocess.run([sys.executable, HERE / "prepare.py"])
    if prepared.returncode:
        sys.exit(prepared.returncode)
    with tempfile.TemporaryDirectory(prefix="shoal-demo-") as folder:
        stage = Stage(folder)
        stage.show(f"cd {HERE}; export SHOAL_DATA={folder}")
        try:
            play(stage)
        except Failed as failed:
            sys.exit(f"\ndemo: {failed}")
        except KeyboardInterrupt:
            sys.exit(130)
        finally:
            signal.alarm(0)
            stage.type("shoal down", shown=False)  # its last line suggests to start a folder that is deleted here
    print(f"\nFrom 4 to 2 to 3 workers, and all succeeded, in {time.monotonic() - stage.began:.0f} s: {PICTURE}")


if __name__ == "__main__":
    main()
