"""A small YAML document costs little: no crash, no large memory, no traceback; in the cluster and in the CLI.

The reader runs in a process with limited address space and processor time: what exceeds them kills that process.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from kit.asgi_client import Asgi
from kit.yaml_bombs import BOMBS, ODD, TEXTS
from shoal.apiserver import request_body
from shoal.apiserver.app import build_application
from shoal.cluster.embedded import EmbeddedCluster
from shoal.kube import yaml_codec

MEMORY_BYTES = 1024**3  # of address space; the interpreter with its libraries takes a third of it
PROCESSOR_SECONDS = 60

READ_ALL = """
import json, sys
from kit.yaml_bombs import BOMBS, TEXTS
from shoal.apiserver.request_body import MalformedBody, decode_yaml
said = {}
for name, data in {**BOMBS, **TEXTS}.items():
    try:
        said[name] = type(decode_yaml(data).value["a"]).__name__
    except MalformedBody as problem:
        said[name] = str(problem)
json.dump(said, sys.stdout)
"""


def limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, PROCESSOR_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def limited(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], preexec_fn=limit, capture_output=True, text=True, cwd=Path(__file__).parents[1]
    )


def test_bombs_are_refused_with_their_line_within_limits() -> None:
    ended = limited("-c", READ_ALL)
    assert ended.returncode == 0, ended.stderr[-2000:]
    said = json.loads(ended.stdout)
    assert {name: said[name] for name in TEXTS} == dict.fromkeys(TEXTS, "str")
    assert [name for name in BOMBS if not said[name].startswith("line ")] == []


@pytest.mark.parametrize("data", [BOMBS["deep lists"], BOMBS["merges"], ODD["own tag"]], ids=["deep", "merges", "tag"])
def test_validate_names_the_line_and_shows_no_traceback(data: bytes, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_bytes(data)
    ended = limited("-m", "shoal", "validate", str(file))
    assert (ended.returncode, "Traceback" in ended.stderr) == (1, False), ended.stderr[-2000:]
    assert f"{file} is not YAML: line " in ended.stderr + ended.stdout


@pytest.mark.parametrize("data", ODD.values(), ids=ODD)
def test_what_json_has_no_value_for_is_a_mistake_with_its_line(data: bytes) -> None:
    with pytest.raises(request_body.MalformedBody, match=r"^line 2: "):
        request_body.decode_yaml(data)


SCALARS: dict[str, object] = {
    "yes": True, "off": False, "y": True, "N": False, "~": None, "012": 10, "0o14": 12, "0x1F": 31, "-0b11": -3,
    "1_000": 1000, "1:30": "1:30", "2020-01-01": "2020-01-01", "=": "=", "0x": "0x", "08": 8, "1e3": 1000, ".5": 0.5,
    "12345678901234567890123": 1.2345678901234568e22, "1e400": "1e400", "_1": "_1", '"yes"': "yes", "!!str 12": "12",
    '!!int "12"': 12, "! 12": "12", "!!float 1": 1,
}  # fmt: skip


@pytest.mark.parametrize(("text", "value"), SCALARS.items(), ids=SCALARS)
def test_scalars_are_what_kubectl_makes_of_them(text: str, value: object) -> None:
    found = request_body.decode_yaml(f"a: {text}".encode()).value["a"]
    assert (found, isinstance(found, bool)) == (value, isinstance(value, bool))


def test_text_that_looks_like_something_else_stays_text_in_both_directions() -> None:
    written = {"texts": [*SCALARS, "<<", "", "-.inf", "+1", "null", "a: b", "\n", "é"]}
    assert request_body.decode_yaml(yaml_codec.encode(written).encode()).value == written


def test_keys_of_a_mapping_override_merged_keys() -> None:
    text = b"one: &one {a: 1, b: 1}\ntwo: &two {a: 2, c: 2}\nall: {c: 3, <<: [*one, *two]}"
    assert request_body.decode_yaml(text).value["all"] == {"a": 1, "b": 1, "c": 3}


def test_a_key_that_occurs_twice_has_its_path() -> None:
    text = b"spec:\n  tasks:\n  - name: a\n  - name: b\n    name: c"
    assert request_body.decode_yaml(text).duplicates == ("spec.tasks[1].name",)


@pytest.mark.parametrize("data", {**BOMBS, **ODD}.values(), ids={**BOMBS, **ODD})
async def test_the_api_server_answers_with_a_bad_request(data: bytes) -> None:
    cluster = await EmbeddedCluster.open(":memory:")
    try:
        http = Asgi(build_application(cluster, token="let-me-in"), "let-me-in")
        headers = {"content-type": "application/yaml"}
        answer = await http("POST", "/api/v1/namespaces/default/pods", data, headers)
        assert (answer.status, "invalid YAML: line " in answer.json["message"]) == (400, True), answer.body
    finally:
        await cluster.close()
