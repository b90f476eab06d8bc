"""A killed cluster, a lost one, an output that cannot be written: one sentence each, and nothing is left running."""

from __future__ import annotations

import os
import select
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from kit.cli_runner import SHOAL
from kit.local_cluster import LocalCluster
from shoal.kube.objects import Obj

pytestmark = pytest.mark.processes


class Shell:
    def __init__(self, folder: Path) -> None:
        self.folder, self.data, self.temporary = folder, folder / "data", folder / "tmp"
        self.temporary.mkdir()
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SHOAL_", "KUBE"))}
        self.env = {**kept, "SHOAL_DATA": str(self.data), "TMPDIR": str(self.temporary), "HOME": str(folder)}
        self.pipe = folder / "pid"
        os.mkfifo(self.pipe)

    def __call__(self, *words: str, code: int = 0, to: Path | None = None) -> str:
        """Both outputs, or what remains of them where standard output goes to `to`."""
        with (to or Path(os.devnull)).open("w") as out:
            ended = subprocess.run(
                [SHOAL, *words], env=self.env, text=True, stderr=subprocess.STDOUT if to is None else subprocess.PIPE,
                stdout=subprocess.PIPE if to is None else out,
            )  # fmt: skip
        said = ended.stdout if to is None else ended.stderr
        assert (ended.returncode, "Traceback" in said, "watch broken" in said) == (code, False, False), said
        return said

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [SHOAL, *words], env=self.env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    def job(self) -> str:
        """A file with a job whose task writes its process id into the pipe and stays."""
        script = f"echo $$$$ > {self.pipe}; echo ready; exec sleep 1000000"
        container = {"name": "main", "image": "x", "command": ["sh", "-c", script]}
        once = {"fancyRetryPolicy": False, "maxRetryCount": 0}
        task = {"retryPolicy": once, "pod": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
        role = {
            "name": "worker", "taskNumber": 1, "task": task,
            "frameworkAttemptCompletionPolicy": {"minFailedTaskCount": 1, "minSucceededTaskCount": 1},
        }  # fmt: skip
        job: Obj = {
            "apiVersion": "frameworkcontroller.microsoft.com/v1", "kind": "Framework", "metadata": {"name": "stays"},
            "spec": {"executionType": "Start", "retryPolicy": once, "taskRoles": [role]},
        }  # fmt: skip
        file = self.folder / "job.yaml"
        file.write_text(yaml.safe_dump(job))
        return str(file)

    def process(self) -> int:
        """A descriptor of the task's process, as soon as it runs."""
        return os.pidfd_open(int(self.pipe.read_text()))


def has_ended(process: int) -> bool:
    select.select([process], [], [])
    os.close(process)
    return True


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def cluster(shell: Shell) -> Iterator[LocalCluster]:
    made = LocalCluster(shell.data)
    made.start()
    yield made
    with suppress(ValueError):  # the test has ended it already
        made.kill()
    shell("down")


def test_a_second_up_succeeds_and_names_options_without_effect(shell: Shell, cluster: LocalCluster) -> None:
    up = f"The cluster in {shell.data} is up already at https://127.0.0.1:"
    assert shell("up").startswith(up)
    again = shell("up", "--detach", "--nodes", "3")
    assert again.startswith(up)
    assert "Warning: --nodes has no effect on a cluster that runs." in again
    assert cluster.pid == yaml.safe_load((shell.data / "running.json").read_text())["pid"]


def test_down_after_a_crash_ends_the_pods_that_were_left(shell: Shell, cluster: LocalCluster) -> None:
    shell("submit", shell.job())
    process = shell.process()
    cluster.kill()
    assert "`shoal down` ends them" in shell("status", code=3)
    said = shell("down")
    assert "Ended 1 pod. " in said
    assert "Pods of these have ended for good, " in said
    assert said.endswith(": Framework stays (1 pod).\n")
    assert has_ended(process)
    assert shell("down") == f"No cluster runs in {shell.data}.\n"
    cluster.start()
    assert shell("wait", "stays", code=143) == "Framework stays has failed: worker-0 was ended by signal 15.\n"


def test_down_names_the_jobs_whose_pods_end_for_good(shell: Shell, cluster: LocalCluster) -> None:
    shell("submit", shell.job())
    os.close(shell.process())
    shell("wait", "stays", "--for", "running")
    said = shell("down")
    cluster.wait()
    assert "Pods of these jobs are terminated; their retry policies apply: Framework stays (1 pod)." in said, said


def test_commands_that_follow_a_cluster_end_when_it_goes_away(shell: Shell, cluster: LocalCluster) -> None:
    shell("submit", shell.job())
    os.close(shell.process())
    following = [shell.start(*words) for words in (("logs", "-f", "stays"), ("wait", "stays", "--for", "deleted"))]
    assert following[0].stdout is not None
    assert following[0].stdout.readline() == "worker-0 | ready\n"
    cluster.kill()
    for process in following:
        said, _ = process.communicate()
        assert (process.returncode, said.count("\n"), " cannot be reached: " in said) == (1, 1, True), said


def test_an_output_that_cannot_be_written_is_a_sentence(shell: Shell, cluster: LocalCluster) -> None:
    shell("submit", shell.job())
    os.close(shell.process())
    full = Path("/dev/full")
    sentence = "Error: a file or the output cannot be written: No space left on device.\n"
    for words in (("get",), ("logs", "stays"), ("logs", "-f", "stays"), ("status",), ("--help",)):
        assert shell(*words, code=1, to=full) == sentence
    assert cluster.pid


def test_a_run_whose_output_cannot_be_written_ends_with_its_pods(shell: Shell) -> None:
    words = [SHOAL, "run", "--plain", "--no-out", shell.job()]
    with Path("/dev/full").open("w") as full:
        running = subprocess.Popen(words, env=shell.env, text=True, stdout=full, stderr=subprocess.PIPE)
    process = shell.process()
    _, said = running.communicate()
    sentence = "Error: a file or the output cannot be written: No space left on device.\n"
    assert (running.returncode, said.endswith(sentence), "Traceback" in said) == (1, True, False), said
    assert has_ended(process)
    assert list(shell.temporary.iterdir()) == []


def test_a_closed_output_is_a_sentence(shell: Shell, cluster: LocalCluster) -> None:
    shell("submit", shell.job())
    os.close(shell.process())
    for words in (("get",), ("logs", "-f", "stays"), ("describe", "stays"), ("--help",)):
        closed = ["sh", "-c", 'exec "$@" >&-', "sh", SHOAL, *words]
        ended = subprocess.run(closed, env=shell.env, text=True, stderr=subprocess.PIPE)
        assert (ended.returncode, ended.stderr.startswith("Error: "), ended.stderr.count("\n")) == (1, True, 1), words
    assert cluster.pid


@pytest.mark.parametrize("words", [(), ("--keep",)], ids=["thrown away", "kept"])
def test_what_a_killed_run_left_is_ended_by_the_next_command(shell: Shell, words: tuple[str, ...]) -> None:
    running = shell.start("run", "--plain", *words, shell.job())
    process = shell.process()
    running.kill()
    running.communicate()
    said = shell("status", code=3)
    assert said.startswith("Ending 1 pod of a `shoal run` that was killed ...\n")
    assert has_ended(process)
    assert "Ending" not in shell("status", code=3)
    assert [path.name.rpartition("-")[0] for path in shell.temporary.iterdir()] == ["shoal-kept"] * len(words)
