"""Mutated requests and manifests against the API server and `shoal validate`, in a process whose memory is measured.

`python -m kit.fuzzing SEED ROUNDS` prints one JSON object: the requests that ended in a 5xx, the tracebacks that were
logged or raised, and the largest resident memory in MiB. The same seed makes the same requests.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from kit import manifests
from kit.asgi_client import Asgi
from kit.frameworks import framework, role
from kit.hostile_values import WRONG, mutated, places, whole
from kit.native_world import job, replica_set
from kit.volcano_jobs import task, vcjob
from kit.yaml_bombs import BOMBS, ODD, TEXTS
from shoal.apiserver import discovery
from shoal.apiserver.app import build_application
from shoal.cli.main import shoal
from shoal.cluster.embedded import EmbeddedCluster
from shoal.dialects import dialects
from shoal.dialects.dialect import definitions_of
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj
from shoal.kube.schemas import schema_of
from shoal.operator.dialect_registration import admit, install
from shoal.scheduler.queue_validation import admit as admit_groups

EXAMPLES = Path(__file__).parents[2] / "examples"
PATCHES = ("application/merge-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml")
PARAMETERS = (
    "limit", "continue", "labelSelector", "fieldSelector", "resourceVersion", "fieldManager", "fieldValidation",
    "pretty", "gracePeriodSeconds", "propagationPolicy", "includeObject", "timeoutSeconds",
)  # fmt: skip
STEPS = (("x", 1), ("", 1), ("\0", 1), ("é", 1), ("namespaces", 1), ("x", 5000), ("watch", 5000))  # of a path
FORMS = (
    "", "*/*", "application/yaml", "application/vnd.kubernetes.protobuf", "application/json;q=nan", ";=,,",
    "application/json;as=Table;v=v1;g=meta.k8s.io", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
)  # fmt: skip
OPTIONS = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 1, "preconditions": {"uid": "x"}}
TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
SMALL: dict[str, Obj] = {
    "Pod": manifests.pod(), "Service": manifests.service(), "Node": manifests.node(), "Event": manifests.event(),
    "Secret": manifests.secret(), "CustomResourceDefinition": manifests.definition(), "ReplicaSet": replica_set("a", 1),
    "Framework": framework(role("a")), "batch": job("a"), "batch.volcano.sh": vcjob("v", task("t")),
}  # fmt: skip


class Failures(logging.Handler):
    """Tracebacks that were logged, each with the request it belongs to."""

    def __init__(self) -> None:
        super().__init__()
        self.doing = ""
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.found.append(f"{self.doing}: {logging.Formatter().formatException(record.exc_info)}")


def collection(kind: Kind) -> str:
    group = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    return f"{group}/namespaces/default/{kind.plural}" if kind.namespaced else f"{group}/{kind.plural}"


def objects_of(kind: Kind) -> list[Obj]:
    """One with every field there is, and an ordinary one."""
    meta: Obj = {"name": "whole", "namespace": "default"} if kind.namespaced else {"name": "whole"}
    full = {**whole(schema_of(kind)), "metadata": meta}
    small = SMALL.get(kind.kind) or SMALL.get(kind.group) or {"metadata": {**meta, "name": "small"}}
    return [{**obj, "apiVersion": kind.api_version, "kind": kind.kind} for obj in (full, small)]


def requests(kinds: list[Kind], rng: random.Random, rounds: int) -> Iterator[tuple[str, str, Any, dict[str, str], Any]]:
    """Method, path, body, headers, query."""
    ready = {kind: objects_of(kind) for kind in kinds}
    for _ in range(rounds):
        kind = rng.choice(kinds)
        folder, obj = collection(kind), rng.choice(ready[kind])
        name = obj["metadata"]["name"]
        part = rng.choice(["", "", "/status", "/scale", "/binding", "/eviction"])
        ((path, value, wrong),) = mutated(obj, rng, 1)
        nested = value
        for step in reversed(path):
            nested = {step: nested} if isinstance(step, str) else [nested]
        query = {rng.choice(PARAMETERS): str(rng.choice(["", "x", "-1", "9" * 5000, "a in (", "e30", "\0", "True"]))}
        pointers = ["/" + "/".join(map(str, each)) for each in places(obj)]
        operations = [
            {"op": op, "path": rng.choice(pointers), "from": rng.choice(pointers), "value": rng.choice(WRONG)}
            for op in rng.choices(["add", "remove", "replace", "move", "copy", "test"], k=3)
        ]
        ((_, _, options),) = mutated(OPTIONS, rng, 1)
        steps, (step, times) = folder.split("/"), rng.choice(STEPS)
        at = rng.randrange(1, len(steps) + 1)
        odd = "/".join([*steps[:at], *[step] * times, *steps[at:]])
        form = {"accept": rng.choice(FORMS)}
        yield rng.choice([
            ("POST", folder, wrong, {}, {"dryRun": "All"}),
            ("POST", f"{folder}/{name}{part}", wrong, {}, {"dryRun": "All"}),
            ("PUT", f"{folder}/{name}{part}", wrong, {}, {"dryRun": "All"}),
            ("PATCH", f"{folder}/{name}{part}", nested, {"content-type": rng.choice(PATCHES)},
             {"fieldManager": "f", "force": "true"}),
            ("PATCH", f"{folder}/{name}", operations, {"content-type": "application/json-patch+json"}, {}),
            ("DELETE", f"{folder}/{name}", options, {}, {"dryRun": "All"}),
            ("GET", folder, b"", TABLE, {}),
            ("GET", folder, b"", {}, query),
            ("POST", folder, obj, {}, query),
            (rng.choice(["GET", "HEAD", "OPTIONS"]), rng.choice([odd, f"{folder}/{name}"]), b"", form, query),
        ])  # fmt: skip


async def ask(rng: random.Random, rounds: int, failures: Failures) -> tuple[list[str], Counter[str]]:
    cluster = await EmbeddedCluster.open(":memory:")
    spoken = list(dialects())
    for dialect in spoken:
        await install(cluster, definitions_of(dialect))
    admit(cluster.machinery, spoken)
    admit_groups(cluster.machinery)
    http = Asgi(build_application(cluster, token="t"), "t")
    kinds = [*cluster.machinery.kinds(), *discovery.REVIEW_KINDS]
    for kind in kinds:
        for obj in objects_of(kind):
            await http("POST", collection(kind), obj)
    wanted = list(requests(kinds, rng, rounds))
    wanted += [("POST", "/api/v1/namespaces/default/pods", data, {"content-type": "application/yaml"}, {})
               for data in {**BOMBS, **ODD, **TEXTS}.values()]  # fmt: skip
    refused, answers = [], Counter[str]()
    for method, path, body, headers, query in wanted:
        failures.doing = f"{method} {path} {query} {repr(body)[:300]}"
        answer = await http(method, path, body, headers, **query)
        answers[str(answer.status)] += 1
        if answer.status >= 500 and answer.status != 504:  # a resourceVersion of the future
            refused.append(f"{answer.status} {failures.doing}")
    await cluster.close()
    return refused, answers


def mangled(data: bytes, rng: random.Random) -> bytes:
    """The manifest with a few lines or bytes gone, doubled, swapped or replaced."""
    lines = data.splitlines(keepends=True)
    for _ in range(rng.randint(1, 4)):
        at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
        choice = rng.randrange(5)
        if choice == 0:
            del lines[at]
            lines = lines or [b""]
        elif choice == 1:
            lines.insert(at, lines[other])
        elif choice == 2:
            lines[at], lines[other] = lines[other], lines[at]
        elif choice == 3:
            name = lines[at].partition(b":")[0]
            lines[at] = name + b": " + repr(rng.choice(WRONG)).encode("ascii", "replace")[:200] + b"\n"
        else:
            cut = rng.randrange(len(lines[at]) + 1)
            lines[at] = (
                lines[at][:cut]
                + rng.choice([b"\0", b"\xff", b"[", b"{", b"&a ", b"*a", b"!!x ", b"'", b"\t"])
                + lines[at][cut:]
            )
    return b"".join(lines)


def validate(rng: random.Random, rounds: int, failures: Failures) -> int:
    """How many manifests were read."""
    sources = [path.read_bytes() for path in sorted(EXAMPLES.glob("*/*.yaml")) if path.name != "shoal.yaml"]
    mutants = [mangled(rng.choice(sources), rng) for _ in range(rounds)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "job.yaml"
        wrong = [*mutants, *BOMBS.values(), *ODD.values()]
        for data in wrong:
            file.write_bytes(data)
            failures.doing = f"shoal validate {data[:2000]!r}"
            result = CliRunner().invoke(shoal, ["validate", str(file)])
            if result.exc_info and not isinstance(result.exception, SystemExit | None):
                logging.getLogger("shoal").error("raised", exc_info=result.exc_info)
    return len(wrong)


def peak_mib() -> int:
    """Of this program: `ru_maxrss` would include the process that forked it."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


def main(seed: int, rounds: int) -> None:
    failures = Failures()
    logging.getLogger().addHandler(failures)
    rng = random.Random(seed)
    refused, answers = asyncio.run(ask(rng, rounds, failures))
    validated = validate(rng, rounds // 20, failures)
    memory = peak_mib()
    found = {"refused": refused, "tracebacks": failures.found, "memory": memory}
    json.dump({**found, "answers": answers, "validated": validated}, sys.stdout)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
