"""`shoal.yaml`: what it gives, and all that is wrong with it at once."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from shoal.local.config import ClusterSettings, load


def written(folder: Path, text: str) -> Path:
    file = folder / "shoal.yaml"
    file.write_text(text)
    return file


def test_a_whole_file_is_understood(tmp_path: Path) -> None:
    config = load(
        written(
            tmp_path,
            """
nodes: 2
capacity: {nvidia.com/gpu: 4, memory: 64Gi}
network: loopback
port: 6443
images:
  "acme/trainer:*": {mounts: {/workspace: ./trainer}, command: [python, main.py]}
""",
        )
    )
    assert config.settings == ClusterSettings(
        nodes=2, capacity={"nvidia.com/gpu": "4", "memory": "64Gi"}, network="loopback", port=6443
    )
    assert config.images.command("acme/trainer:1") == ("python", "main.py")
    assert config.images.mounts("acme/trainer:1")[0].source == tmp_path / "trainer"


def test_the_file_is_named_so_that_it_is_found_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, "images: {x: {}}")
    monkeypatch.chdir(tmp_path)
    assert load(Path("shoal.yaml")).images.config_file == f"{tmp_path}/shoal.yaml"
    written(tmp_path, "images: {x: {comand: [a]}}")
    with pytest.raises(click.ClickException) as refused:
        load(Path("shoal.yaml"))
    assert refused.value.message.splitlines()[1:] == [
        '  images."x".comand: there is no such key; did you mean `command`?'
    ]


def test_an_empty_file_means_the_defaults(tmp_path: Path) -> None:
    assert load(written(tmp_path, "")).settings == load(None).settings == ClusterSettings()
    assert load(written(tmp_path, "nodes:\ncapacity:\nport:\nimages:\n")).settings == ClusterSettings()


def test_settings_of_a_language_may_stand_in_the_file_people_have(tmp_path: Path) -> None:
    (tmp_path / "frameworkcontroller.yaml").write_text("frameworkCompletedRetainSec: 60\n")
    by_name = load(written(tmp_path, "dialects: {framework: ./frameworkcontroller.yaml}"))
    in_place = load(written(tmp_path, "dialects: {framework: {frameworkCompletedRetainSec: 60}}"))
    assert by_name.settings == in_place.settings
    assert by_name.settings.dialects["framework"].framework_completed_retain_sec == 60


MISTAKES = [
    pytest.param(
        "nodes: 0\nnetwork: wifi\ncolour: red\ncapacity: {nvidia.com/gpu: half, gpu: 1}\nimges: 1\n"
        "images: {x: {comand: [a]}}",
        [
            "nodes: 0 is not right; write a whole number from 1 to 64",
            "capacity.nvidia.com/gpu: 'half' is not an amount; write for example 4 or 64Gi",
            "capacity.gpu: this is not the name of a resource; "
            "write cpu, memory, ephemeral-storage, pods, or for example nvidia.com/gpu",
            'network: "wifi" is not right; write auto, isolated or loopback',
            "colour: there is no such key; there are: nodes, capacity, network, pod_pids_limit, port, dialects, "
            "scheduler, logs, images",
            "imges: there is no such key; did you mean `images`?",
            'images."x".comand: there is no such key; did you mean `command`?',
        ],
        id="all at once",
    ),
    pytest.param(
        "capacity: {nvidia.com/gpu: 500m}",
        ["capacity.nvidia.com/gpu: '500m' must be a whole number that is not negative"],
        id="half a device",
    ),
    pytest.param(
        "dialects: {cobol: {}, framework: {workerNumber: 0, podFailureSpec: [{code: 5, podPatterns: []}]}}",
        [
            "dialects.cobol: there is no such job language; there are: framework, volcano, kubedl, kubeflow",
            "dialects.framework.workerNumber: Invalid value: 0: must be more than 0",
            "dialects.framework.podFailureSpec[0].podPatterns: Invalid value: []: must have 1 or more: at least one "
            "pattern of the pods the entry is for",
        ],
        id="settings of job languages",
    ),
    pytest.param(
        "dialects: {framework: [1]}",
        ["dialects.framework: must be a mapping of settings, or the name of a file that holds one"],
        id="settings of another shape",
    ),
    pytest.param(
        "nodes: yes\nport: '6443'\ncapacity: [gpu]",
        [
            "nodes: true is not right; write a whole number from 1 to 64",
            'port: "6443" is not right; write a whole number from 0 to 65535; 0 is any free one',
            'capacity: ["gpu"] is not right; write resources with amounts, such as {nvidia.com/gpu: 4}',
        ],
        id="other types",
    ),
    pytest.param(
        "logs: {keep: plenty, days: 0, forever: true}",
        [
            "logs.keep: 'plenty' is not an amount; write for example 2Gi",
            "logs.days: 0 is not right; write a number of days, such as 14",
            "logs.forever: there is no such key; there are: keep, days",
        ],
        id="logs",
    ),
    pytest.param("nodes: 1\nnodes: 2", ["nodes: occurs twice"], id="a key twice"),
]


@pytest.mark.parametrize(("text", "mistakes"), MISTAKES)
def test_every_mistake_is_named_with_its_path(tmp_path: Path, text: str, mistakes: list[str]) -> None:
    file = written(tmp_path, text)
    with pytest.raises(click.ClickException) as refused:
        load(file)
    first, *listed = refused.value.message.splitlines()
    assert first == f"{file} has {len(mistakes)} mistake{'s' * (len(mistakes) > 1)}:"
    assert sorted(line.strip() for line in listed) == sorted(mistakes)


UNREADABLE = [
    pytest.param("a: [", "is not YAML", id="no YAML"),
    pytest.param("- a\n- b", "must be a mapping with keys such as `images:` or `nodes:`", id="a list"),
]


@pytest.mark.parametrize(("text", "sentence"), UNREADABLE)
def test_what_is_no_configuration_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(click.ClickException, match=sentence):
        load(written(tmp_path, text))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(click.ClickException, match=r"cannot read .*nowhere.yaml: No such file or directory"):
        load(tmp_path / "nowhere.yaml")


def test_settings_without_effect_are_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    load(written(tmp_path, "dialects: {framework: {kubeClientQps: 5, workerNumber: 3, kubeConfigFilePath: ./mine}}"))
    assert capsys.readouterr().err.splitlines() == [
        "Warning: dialects.framework.kubeConfigFilePath has no effect: `--kubeconfig` and `--context` say which "
        "cluster is meant, else KUBECONFIG.",
        "Warning: dialects.framework.kubeClientQps has no effect: requests follow the pace at which the API server "
        "answers.",
    ]
