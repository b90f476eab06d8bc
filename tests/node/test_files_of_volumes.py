"""What volumes hold and how their files change under a reader's eyes."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.pods import container, pod, stored
from shoal.kube.kinds import CONFIG_MAP, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, SECRET
from shoal.kube.objects import Key, Obj
from shoal.node import volumes
from shoal.node.atomic_files import write_all
from shoal.node.checkpoint import PodFolder
from shoal.node.environment import EnvContext
from shoal.node.pod_references import Lookup, Reference, ReferenceMissing, references_of
from shoal.node.sandbox.interface import Mount
from shoal.node.volume_files import File, Files, files_of
from shoal.node.volumes import PreparedVolume, mounts_for, prepare

OBJECTS: dict[Reference, Obj] = {
    Reference(CONFIG_MAP, Key("default", "cm")): {"data": {"a": "A", "b": "B"}},
    Reference(SECRET, Key("default", "s")): {"data": {"k": base64.b64encode(b"K").decode()}},
    Reference(PERSISTENT_VOLUME_CLAIM, Key("default", "unbound")): {"status": {"phase": "Pending"}},
    Reference(PERSISTENT_VOLUME_CLAIM, Key("default", "nfs")): {
        "spec": {"volumeName": "pv-nfs"},
        "status": {"phase": "Bound"},
    },
    Reference(PERSISTENT_VOLUME, Key("", "pv-nfs")): {"metadata": {"name": "pv-nfs"}, "spec": {"nfs": {}}},
}
AROUND = EnvContext("n1", "192.0.2.1", "10.77.1.4", "p", lookup=Lookup(OBJECTS))
POD = stored({**pod("p"), "metadata": {"name": "p", "namespace": "default", "labels": {"b": "2", "a": '1"'}}})


def files(**volume: Any) -> Files:
    return files_of(POD, {"name": "v", **volume}, AROUND)


CONTENTS: dict[str, tuple[dict[str, Any], Files]] = {
    "a whole map": ({"configMap": {"name": "cm"}}, {"a": File(b"A"), "b": File(b"B")}),
    "chosen keys with paths and modes": (
        {
            "configMap": {
                "name": "cm",
                "defaultMode": 0o400,
                "items": [{"key": "a", "path": "x/y"}, {"key": "b", "path": "z", "mode": 0o600}],
            }
        },
        {"x/y": File(b"A", 0o400), "z": File(b"B", 0o600)},
    ),
    "a secret": ({"secret": {"secretName": "s", "defaultMode": 0o440}}, {"k": File(b"K", 0o440)}),
    "optional and absent": ({"configMap": {"name": "no", "optional": True}}, {}),
    "the pod itself": (
        {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        {"labels": File(b'a="1\\""\nb="2"')},
    ),
    "several in one": (
        {
            "projected": {
                "sources": [
                    {"configMap": {"name": "cm", "items": [{"key": "a", "path": "a"}]}},
                    {"secret": {"name": "s"}},
                ]
            }
        },
        {"a": File(b"A"), "k": File(b"K")},
    ),
}


@pytest.mark.parametrize("case", CONTENTS, ids=str)
def test_the_files_of_a_volume(case: str) -> None:
    volume, expected = CONTENTS[case]
    assert files(**volume) == expected


MISSING: dict[str, tuple[dict[str, Any], str]] = {
    "a map": ({"configMap": {"name": "no"}}, 'configmap "no" not found'),
    "a key": (
        {"configMap": {"name": "cm", "items": [{"key": "no", "path": "x"}]}},
        'configmap "cm" references non-existent key: no',
    ),
    "a claim": ({"persistentVolumeClaim": {"claimName": "no"}}, 'persistentvolumeclaim "no" not found'),
    "its volume": (
        {"persistentVolumeClaim": {"claimName": "unbound"}},
        'persistentvolumeclaim "unbound" is Pending: it has no volume yet',
    ),
    "a volume of this machine": (
        {"persistentVolumeClaim": {"claimName": "nfs"}},
        'persistentvolume "pv-nfs" is neither a hostPath nor a local volume: this node cannot mount it',
    ),
    "a folder": (
        {"hostPath": {"path": "/no/such", "type": "Directory"}},
        "hostPath type check failed: /no/such is not a directory",
    ),
    "a file": ({"hostPath": {"path": "/etc", "type": "File"}}, "hostPath type check failed: /etc is not a file"),
    "a kind": ({"nfs": {"server": "x"}}, 'volume "v" is of a type that this node does not support: nfs'),
    "a medium": (
        {"emptyDir": {"medium": "HugePages"}},
        'volume "v": this node supports the media "" and "Memory", not "HugePages"',
    ),
}


@pytest.mark.parametrize("case", MISSING, ids=str)
def test_missing_references_are_reported(case: str, tmp_path: Path) -> None:
    volume, sentence = MISSING[case]
    with pytest.raises(ReferenceMissing) as missing:
        prepare({**POD, "spec": {**POD["spec"], "volumes": [{"name": "v", **volume}]}}, PodFolder(tmp_path), AROUND)
    assert str(missing.value) == sentence


def tree(folder: Path) -> dict[str, tuple[bytes, int]]:
    """What a program sees when it walks the folder's visible names."""

    def walk(path: Path) -> Iterator[Path]:
        for entry in sorted(path.iterdir()):
            if not entry.name.startswith(".."):
                yield from walk(entry) if entry.is_dir() else [entry]

    return {str(p.relative_to(folder)): (p.read_bytes(), p.stat().st_mode & 0o777) for p in walk(folder)}


NAMES = st.sampled_from(["a", "b", "c/d", "c/e", "f"])
VERSIONS = st.lists(
    st.dictionaries(NAMES, st.builds(File, st.binary(max_size=8), st.sampled_from([0o644, 0o600]))), max_size=5
)


@settings(deadline=None)
@given(VERSIONS)
def test_after_each_change_the_folder_holds_exactly_the_new_files(versions: list[Files]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "v"
        for version in versions:
            write_all(folder, version)
            assert tree(folder) == {path: (file.data, file.mode) for path, file in version.items()}
            assert len(list(folder.glob("..*"))) == 2  # the link and one version


def test_nothing_new_changes_nothing(tmp_path: Path) -> None:
    assert write_all(tmp_path, {"a": File(b"A")})
    before = (tmp_path / "..data").readlink()
    assert not write_all(tmp_path, {"a": File(b"A")})
    assert (tmp_path / "..data").readlink() == before


def test_who_has_a_file_open_keeps_the_old_text(tmp_path: Path) -> None:
    write_all(tmp_path, {"a": File(b"old")})
    with (tmp_path / "a").open("rb") as reader:
        write_all(tmp_path, {"a": File(b"new")})
        assert (reader.read(), (tmp_path / "a").read_bytes()) == (b"old", b"new")


def test_mounts_come_outermost_first_with_parts_and_expressions(tmp_path: Path) -> None:
    holder = container(
        "a",
        volumeMounts=[
            {"name": "v", "mountPath": "/a/b/c", "subPathExpr": "$(WHO)/x"},
            {"name": "v", "mountPath": "/a", "readOnly": True},
            {"name": "t", "mountPath": "/t"},
        ],
    )
    prepared = {"v": PreparedVolume(tmp_path), "t": PreparedVolume(None, 1 << 20)}
    assert mounts_for(holder, prepared, {"WHO": "me"}) == (
        Mount("/a", tmp_path, True),
        Mount("/t", None, False, 1 << 20),
        Mount("/a/b/c", tmp_path, sub_path="me/x"),
    )


def test_a_part_of_a_volume_cannot_lead_out_of_it(tmp_path: Path) -> None:
    (tmp_path / "v").mkdir()
    (tmp_path / "v" / "out").symlink_to(tmp_path)
    for part in ("../x", "out"):
        holder = container("a", volumeMounts=[{"name": "v", "mountPath": "/a", "subPath": part}])
        with pytest.raises(ReferenceMissing):
            mounts_for(holder, {"v": PreparedVolume(tmp_path / "v")}, {})


def test_memory_that_containers_share_outlives_each_of_them(tmp_path: Path) -> None:
    mount = [{"name": "m", "mountPath": "/m"}]
    made = stored(pod("p", container("a", volumeMounts=mount), container("b", volumeMounts=mount)), uid="shared-test")
    made["spec"]["volumes"] = [{"name": "m", "emptyDir": {"medium": "Memory"}}]
    (prepared,) = prepare(made, PodFolder(tmp_path), AROUND).values()
    assert prepared.path == volumes.SHARED_MEMORY / "shoal-shared-test" / "m"
    volumes.remove("shared-test")
    assert not prepared.path.exists()


def test_all_references_of_a_pod_are_found() -> None:
    holder = container(
        "a",
        envFrom=[{"configMapRef": {"name": "c1"}}, {"secretRef": {"name": "s1"}}],
        env=[{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "c2", "key": "k"}}}],
    )
    listed = [
        {"name": "1", "configMap": {"name": "c3"}},
        {"name": "2", "secret": {"secretName": "s2"}},
        {"name": "3", "projected": {"sources": [{"secret": {"name": "s3"}}]}},
        {"name": "4", "persistentVolumeClaim": {"claimName": "p1"}},
    ]
    found = {(r.kind.kind, r.key.name) for r in references_of(pod("p", holder, volumes=listed))}
    expected = {("ConfigMap", f"c{i}") for i in (1, 2, 3)} | {("Secret", f"s{i}") for i in (1, 2, 3)}
    assert found == expected | {("PersistentVolumeClaim", "p1")}
