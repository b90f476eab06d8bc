"""What the operator, the command line and the webhook rely on in every job language."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import pytest

from kit.capabilities import capability
from kit.languages import LANGUAGES, UID, Language
from shoal.dialects.capabilities import Capability, Scaling, Suspension
from shoal.dialects.dialect import ManifestInvalid, Owner, SettingsInvalid
from shoal.engine import (
    BuildContext,
    Create,
    Created,
    Job,
    JobState,
    Observed,
    WriteResult,
    advance,
    compact_state,
)
from shoal.engine.policies import CompletionsSize
from shoal.kube.objects import Key, Obj
from shoal.kube.patching import json_patch

NOW = datetime(2030, 1, 1, tzinfo=UTC)

each_language = pytest.mark.parametrize("language", LANGUAGES, ids=lambda each: each.name)


def having(wanted: type[Capability]) -> Any:
    able = [each for each in LANGUAGES if each.dialect.capability(wanted) is not None]
    return pytest.mark.parametrize("language", able, ids=lambda each: each.name)


def job_of(language: Language, manifest: Obj) -> Job:
    job = language.dialect.to_job(manifest, language.dialect.settings(None))
    assert job is not None
    return job


def sizes(job: Job) -> dict[str, int]:
    return {role.name: role.size for role in job.roles}


# --- manifests -----------------------------------------------------------------------------------------------------


@each_language
def test_defaults_are_stable(language: Language) -> None:
    written = language.written()
    once = language.dialect.default(written)
    assert written == language.written()
    assert language.dialect.default(once) == once


@each_language
def test_a_good_manifest_has_no_mistakes(language: Language) -> None:
    manifest = language.stored
    assert language.dialect.validate(manifest) == []
    assert language.dialect.validate(manifest, manifest) == []


@each_language
def test_all_mistakes_are_listed_at_once_with_their_paths(language: Language) -> None:
    manifest = language.stored
    for path, value in language.wrong.items():
        put(manifest["spec"], path, value)
    found = {cause.field for cause in language.dialect.validate(manifest)}
    assert {dotted(path) for path in language.wrong} <= found


@each_language
def test_a_stored_manifest_with_mistakes_is_no_job(language: Language) -> None:
    manifest = language.stored
    for path, value in language.wrong.items():
        put(manifest["spec"], path, value)
    with pytest.raises(ManifestInvalid):
        job_of(language, manifest)


@each_language
def test_an_unknown_setting_is_a_mistake(language: Language) -> None:
    with pytest.raises(SettingsInvalid):
        language.dialect.settings({"colour": "green"})


@each_language
def test_capabilities_are_there_once(language: Language) -> None:
    bases = [next(base for base in type(each).__mro__ if base.__module__ == Capability.__module__)
             for each in language.dialect.capabilities]  # fmt: skip
    assert len(set(bases)) == len(bases)


# --- pods ----------------------------------------------------------------------------------------------------------


def own_pod(language: Language, manifest: Obj) -> Obj:
    before = deepcopy(manifest)
    context = BuildContext(run_owner="run-owner-uid", sizes=sizes(job_of(language, manifest)))
    pod = language.dialect.build_pod(manifest, Create(language.task, context))
    assert manifest == before
    pod["metadata"].setdefault("name", "made-by-the-server")
    pod["metadata"]["uid"] = "pod-uid"
    return pod


@each_language
def test_a_pod_of_the_job_is_known_as_its_own(language: Language) -> None:
    manifest = language.stored
    pod = own_pod(language, manifest)
    name = language.dialect.pod_name(manifest, language.task)
    assert name in ("", pod["metadata"]["name"])
    seen = language.dialect.observe_pod(pod, manifest)
    assert seen is not None
    assert (seen.uid, seen.role, seen.index) == ("pod-uid", language.role, 1)


@each_language
def test_a_foreign_pod_is_never_the_jobs_own(language: Language) -> None:
    """Not even one with the name, labels and annotations of a pod of the job."""
    manifest = language.stored
    pod = own_pod(language, manifest)
    del pod["metadata"]["ownerReferences"]
    assert language.dialect.owner_of(pod) is None
    seen = language.dialect.observe_pod(pod, manifest)
    assert seen is None or not seen.owned


@each_language
def test_pods_of_a_former_job_of_that_name_are_foreign(language: Language) -> None:
    manifest = language.stored
    pod = own_pod(language, manifest)
    manifest["metadata"]["uid"] = "another"
    seen = language.dialect.observe_pod(pod, manifest)
    assert seen is None or not seen.owned


@each_language
def test_the_object_a_job_owns_directly_names_it_as_owner(language: Language) -> None:
    manifest = language.stored
    kind = language.dialect.kind
    child = {
        "metadata": {
            "name": "child",
            "namespace": "default",
            "ownerReferences": [
                {"apiVersion": kind.api_version, "kind": kind.kind, "name": "a", "uid": UID, "controller": True}
            ],
        }
    }
    assert manifest["metadata"]["uid"] == UID
    assert language.dialect.owner_of(child) in (Owner(Key("default", "a"), UID), None)


# --- state ---------------------------------------------------------------------------------------------------------


@each_language
def test_a_new_job_has_an_empty_state(language: Language) -> None:
    assert language.dialect.load_state(language.stored) == JobState()


@each_language
def test_a_state_survives_its_storage(language: Language) -> None:
    """After the first pass, and after the second, which knows of created pods."""
    manifest, state = language.stored, JobState()
    results: tuple[WriteResult, ...] = ()
    job = job_of(language, manifest)
    memory = job.policies.pod_policy.memory
    for _ in range(2):
        step = advance(job, state, Observed(write_results=results, nonce="0"), NOW)
        patch = language.dialect.save_state(job, step.state, language.dialect.settings(None)).patch(manifest)
        manifest = json_patch(manifest, patch)
        loaded = language.dialect.load_state(manifest)
        assert compact_state(loaded, memory) == compact_state(step.state, memory)
        creates = [write for write in step.writes if isinstance(write, Create)]
        state, results = step.state, tuple(Created(each.target, f"uid-{place}") for place, each in enumerate(creates))


# --- what people do ------------------------------------------------------------------------------------------------


@having(Scaling)
def test_a_scaled_job_has_the_size_that_was_asked_for(language: Language) -> None:
    scaling, manifest = capability(language.dialect, Scaling), language.stored
    for size in (5, 1):
        changed = json_patch(manifest, scaling.patch(manifest, {language.role: size}))
        assert language.dialect.validate(changed, manifest) == []
        assert at_most_at_once(job_of(language, changed), language.role) == size


@having(Scaling)
def test_scaling_knows_the_roles_of_the_job(language: Language) -> None:
    with pytest.raises(LookupError, match="nobody"):
        capability(language.dialect, Scaling).patch(language.stored, {"nobody": 1})


@having(Suspension)
def test_a_job_that_is_stopped_and_started_is_the_same_as_before(language: Language) -> None:
    suspension, manifest = capability(language.dialect, Suspension), language.stored
    stopped = json_patch(manifest, suspension.stop_patch(manifest))
    started = json_patch(stopped, suspension.start_patch(stopped))
    job = job_of(language, stopped)
    assert language.dialect.validate(stopped, manifest) == []
    assert job.stop or job.policies.hold.requested
    assert job.policies.hold.requested == suspension.keeps_work
    assert job_of(language, started) == job_of(language, manifest)


def at_most_at_once(job: Job, role: str) -> int:
    """How many pods of that role there are at the same time, while nothing has ended."""
    size = job.policies.size
    return size.parallelism if isinstance(size, CompletionsSize) else sizes(job)[role]


def put(spec: Any, path: tuple[str, ...], value: object) -> None:
    for step in path[:-1]:
        spec = spec[int(step) if step.isdigit() else step]
    spec[path[-1]] = value


def dotted(path: tuple[str, ...]) -> str:
    text = "spec"
    for step in path:
        text += f"[{step}]" if step.isdigit() else f".{step}"
    return text
