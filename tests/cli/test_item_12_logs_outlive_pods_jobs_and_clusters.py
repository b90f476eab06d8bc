"""The logs of every task and attempt are read after the pod, the job and the cluster have ended."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.cli_runner import Terminal
from kit.framework_notation import fw, role
from kit.local_cluster import LocalCluster
from shoal.kube.objects import Obj

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    cluster = LocalCluster(tmp_path_factory.mktemp("kept") / "data")
    cluster.start()
    yield cluster
    cluster.stop()


@pytest.fixture(scope="module")
def terminal(cluster: LocalCluster) -> Terminal:
    return Terminal(cluster.data.parent)


def failing_twice(name: str, folder: Path) -> Obj:
    """Two workers, all of which must succeed; worker-1 fails in its first two attempts."""
    made = fw(name, role("worker", 2, 1, 2, retry=(False, 2)))
    words = f"""
    [ $FC_TASK_INDEX = 0 ] && {{ echo worker zero; exit 0; }}
    n=$(ls {folder} | grep -c {name}-attempt); touch {folder}/{name}-attempt-$n
    echo loss 0.$n of attempt $n; [ $n = 2 ]
    """
    made["spec"]["taskRoles"][0]["task"]["pod"]["spec"]["containers"][0]["command"] = ["sh", "-c", words]
    return made


ALL = "".join(f"worker-1 #{n} | loss 0.{n} of attempt {n}\n" for n in range(3))


def test_every_attempt_is_printed_after_the_end_a_restart_and_a_deletion(
    cluster: LocalCluster, terminal: Terminal
) -> None:
    terminal.submit(failing_twice("thrice", terminal.folder))
    terminal("wait", "thrice")
    assert terminal("logs", "thrice", "worker-1", "--all-attempts") == ALL
    assert terminal("logs", "thrice") == "worker-0 | worker zero\nworker-1 | loss 0.2 of attempt 2\n"
    assert terminal("logs", "thrice", "worker-1", "--previous") == "loss 0.1 of attempt 1\n"
    assert terminal("logs", "thrice", "--all-attempts", "--grep", "attempt [01]", "--no-prefix") == (
        "loss 0.0 of attempt 0\nloss 0.1 of attempt 1\n"
    )
    cluster.stop()
    assert terminal("logs", "thrice", "worker-1", "--all-attempts").endswith(ALL)
    by_default = Terminal(cluster.data.parent)  # with neither --data nor SHOAL_DATA nor any kubeconfig
    home = cluster.data.parent / "home" / ".local" / "share" / "shoal"
    home.mkdir(parents=True)
    (home / "default").symlink_to(cluster.data)
    for name in ("SHOAL_DATA", "KUBECONFIG", "XDG_DATA_HOME"):
        by_default.env.pop(name, None)
    by_default.env["HOME"] = str(cluster.data.parent / "home")
    assert by_default("logs", "thrice", "worker-1").endswith("loss 0.2 of attempt 2\n")
    by_default.env["KUBECONFIG"] = "/nowhere/config"
    assert "KUBECONFIG names /nowhere/config, which does not exist" in by_default("logs", "thrice", code=1)
    cluster.start()
    assert terminal("logs", "thrice", "worker-1", "--all-attempts") == ALL
    terminal("delete", "thrice")
    assert terminal("logs", "thrice", "worker-1", "--all-attempts") == ALL
    assert "there is no job 'never'" in terminal("logs", "never", "--all-attempts", code=1)


def test_logs_of_pods_that_are_kept_are_read_while_the_cluster_is_down(
    cluster: LocalCluster, terminal: Terminal
) -> None:
    marks = terminal.folder / "marks"
    marks.mkdir()
    words = f"n=$(ls {marks} | wc -l); touch {marks}/$n; echo attempt $n; [ $n = 1 ]"
    first = {"name": "before", "image": "any", "command": ["echo", "prepared"]}
    main = {"name": "main", "image": "any", "command": ["sh", "-c", words]}
    pod = {"restartPolicy": "OnFailure", "initContainers": [first], "containers": [main]}
    job: Obj = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "stays"}}
    terminal.submit({**job, "spec": {"template": {"spec": pod}}})
    terminal("wait", "stays")
    cluster.stop()
    try:
        kept = terminal("logs", "stays")
        assert kept.splitlines()[1:] == ["attempt 1"], kept
        assert terminal("logs", "stays", "--previous").endswith("attempt 0\n")
        assert terminal("logs", "stays", "-c", "before").endswith("prepared\n")
    finally:
        cluster.start()
    assert terminal("logs", "stays") == "attempt 1\n"


def test_only_lines_since_then_are_printed(terminal: Terminal) -> None:
    terminal.submit(failing_twice("since", terminal.folder))
    terminal("wait", "since")
    assert terminal("logs", "since", "worker-0", "--since", "1h") == "worker zero\n"
    assert terminal("logs", "since", "worker-0", "--since", "2999-01-01T00:00:00Z") == ""
    assert "'yesterday' is neither a duration such as 30s" in terminal("logs", "since", "--since", "yesterday", code=2)


def test_a_pattern_that_never_ends_is_stopped(terminal: Terminal) -> None:
    job = fw("long", role("worker", 1))
    words = "printf '%010000d' 0 | tr 0 a; echo !"
    job["spec"]["taskRoles"][0]["task"]["pod"]["spec"]["containers"][0]["command"] = ["sh", "-c", words]
    terminal.submit(job)
    terminal("wait", "long")
    assert "needs more than 1 s for a line of 10001" in terminal("logs", "long", "--grep", "^(a+)+$", code=1)
    assert "is no regular expression" in terminal("logs", "long", "--grep", "(", code=2)


def test_the_object_as_it_ended_is_in_the_history_whatever_its_language(terminal: Terminal) -> None:
    container = {"name": "main", "image": "any", "command": ["sh", "-c", "echo done"]}
    pod = {"restartPolicy": "Never", "containers": [container]}
    terminal.submit(
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "plain"}, "spec": {"template": {"spec": pod}}}
    )
    terminal("wait", "plain")
    lines = (terminal.folder / "data" / "history.log").read_text().splitlines()
    (told,) = (line for line in lines if " default/plain: OnJobEnd: ObjectSnapshot: " in line)
    ended = json.loads(told.partition("ObjectSnapshot: ")[2])
    assert (ended["kind"], ended["status"]["succeeded"]) == ("Job", 1)
    terminal("delete", "plain")
    assert terminal("logs", "plain") == "done\n"


def test_many_short_pods_leave_at_most_the_budget_and_no_folder(tmp_path: Path) -> None:
    (tmp_path / "shoal.yaml").write_text("logs: {keep: 200Ki}\n")
    cluster = LocalCluster(tmp_path / "data", "--config", str(tmp_path / "shoal.yaml"))
    cluster.start()
    terminal = Terminal(tmp_path)
    try:
        job = fw("many", role("worker", 40, 1, 40))
        words = "seq 1 2000; echo the last line of $FC_TASK_INDEX"
        job["spec"]["taskRoles"][0]["task"]["pod"]["spec"]["containers"][0]["command"] = ["sh", "-c", words]
        terminal.submit(job)
        terminal("wait", "many")
        lines = terminal("logs", "many", "--tail", "1").splitlines()
        terminal("delete", "many")
    finally:
        cluster.stop()
    kept = [path for path in (cluster.data / "logs").rglob("*") if path.is_file()]
    assert 0 < sum(path.stat().st_blocks * 512 for path in kept) <= 200 << 10
    assert 0 < len(lines) < 40
    assert all("the last line of" in line for line in lines)
    assert list((cluster.data / "nodes").glob("*/pods/*")) == []
