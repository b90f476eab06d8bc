"""Steps and losses of a finished run: read from its log, whatever the size of that, into a file that stays small."""

from __future__ import annotations

from pathlib import Path

from shoal.node.step_metrics import MAX_BYTES_KEPT, MAX_BYTES_READ, MAX_POINTS, Point, append, points_in

STAMP = "2026-11-18T00:00:00.000000000Z"


def written(path: Path, lines: int, *, padding: int = 0) -> Path:
    with path.open("w") as file:
        for number in range(lines):
            file.write(f"{STAMP} stdout F step {number} loss {lines - number} {'x' * padding}\n")
    return path


def read(path: Path) -> list[Point]:
    return points_in(path, task="worker-0", pod="uid", attempt=0)


def test_every_change_is_a_point(tmp_path: Path) -> None:
    log = tmp_path / "main.0.log"
    log.write_text(f"{STAMP} stdout F step 1\n{STAMP} stderr P \r 5%| | 1/20 [00:01<00:19, 2.00it/s, loss=nan]\n")
    assert read(log) == [
        Point(STAMP, "worker-0", "uid", 0, 1),
        Point(STAMP, "worker-0", "uid", 0, "1/20", "nan", 0.5),
    ]


def test_rotated_files_come_before_the_newest(tmp_path: Path) -> None:
    for suffix, step in ((".2", 1), (".1", 2), ("", 3)):
        (tmp_path / f"main.0.log{suffix}").write_text(f"{STAMP} stdout F step {step}\n")
    assert [point.step for point in read(tmp_path / "main.0.log")] == [1, 2, 3]


def test_each_line_of_several_blocks_is_read_once(tmp_path: Path) -> None:
    points = read(written(tmp_path / "log", 1900, padding=1000))
    assert [point.step for point in points] == list(range(1900))


def test_a_long_log_leaves_few_points_from_its_whole_length(tmp_path: Path) -> None:
    log = written(tmp_path / "log", 40_000, padding=300)
    assert log.stat().st_size > 2 * MAX_BYTES_READ
    steps = [int(point.step) for point in read(log)]
    assert MAX_POINTS / 2 <= len(steps) <= MAX_POINTS
    assert (steps == sorted(steps), steps[0], steps[-1] > 38_000) == (True, 0, True)


def test_the_file_of_a_job_stays_small_and_keeps_its_newest_points(tmp_path: Path) -> None:
    file = tmp_path / "metrics.jsonl"
    for number in range(30):
        append([Point(STAMP, f"worker-{number}", "uid", 0, step) for step in range(MAX_POINTS)], file)
        assert file.stat().st_size <= MAX_BYTES_KEPT
    assert b"worker-29" in file.read_bytes()
    assert b"worker-0" in file.read_bytes()


def test_a_run_without_a_log_has_no_points(tmp_path: Path) -> None:
    assert read(tmp_path / "none") == []
