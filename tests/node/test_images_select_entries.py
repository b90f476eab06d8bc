"""The `images:` of a configuration: which entry an image selects, and every mistake in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.node.images import Images, ImagesInvalid, read_images
from shoal.node.messages import text
from shoal.node.sandbox.interface import Mount

BASE = Path("/home/me")


def read(written: object) -> Images:
    return read_images(written, config_file="shoal.yaml", base=BASE)


ENTRIES = read(
    {
        "*": {"command": ["everything"]},
        "acme/*": {"command": ["acme"]},
        "acme/trainer:*": {"command": ["any-tag"]},
        "acme/trainer:v1": {"command": ["v1"]},
    }
)

CHOICES = {
    "acme/trainer:v1": "v1",
    "acme/trainer:v2": "any-tag",
    "acme/other": "acme",
    "busybox": "everything",
}


@pytest.mark.parametrize("image", CHOICES, ids=str)
def test_the_most_specific_pattern_wins(image: str) -> None:
    assert ENTRIES.command(image) == (CHOICES[image],)


def test_an_entry_stands_in_for_the_image() -> None:
    images = read(
        {
            "t": {
                "mounts": {"/workspace": "src", "/data": "/srv"},
                "python": "venv",
                "env": {"A": "1"},
                "working_dir": "/workspace",
            }
        }
    )
    assert images.mounts("t") == (Mount("/data", Path("/srv")), Mount("/workspace", BASE / "src"))
    assert images.env("t", "/bin") == {"PATH": "/home/me/venv/bin:/bin", "VIRTUAL_ENV": "/home/me/venv", "A": "1"}
    assert images.working_dir("t") == "/workspace"


def test_a_mount_without_a_folder_is_a_fresh_one() -> None:
    images = read({"t": {"mounts": {"/scratch": None, "/data": "/srv"}}})
    assert images.mounts("t") == (Mount("/data", Path("/srv")), Mount("/scratch", None))


def test_an_image_without_an_entry_brings_nothing() -> None:
    images = read(None)
    assert (images.command("x"), images.mounts("x"), images.env("x", "/bin"), images.working_dir("x")) == (
        (),
        (),
        {},
        None,
    )


def test_the_message_about_a_missing_command_names_the_file_and_the_key() -> None:
    assert text(read({}).missing_command("acme/t:1", "main")) == (
        'container main sets no command, and none is configured for image "acme/t:1". Set `command` in the pod, or add '
        'an entry "acme/t:1" with `command:` under `images:` in shoal.yaml, for example: '
        "images: {'acme/t:1': {command: [python, main.py]}}; then stop the cluster and start it again"
    )


def test_every_mistake_is_listed_with_its_path_what_was_found_and_what_would_be_right() -> None:
    with pytest.raises(ImagesInvalid) as invalid:
        read(
            {
                "a": {"mounts": {"rel": "x", "/": "y"}, "command": "text", "comand": ["a"], "extra": 1},
                "b": {"env": {"N": 4, "YES": True}, "working_dir": "here", "command": ["sleep", 5]},
                "c": ["python"],
            }
        )
    below = "is not right; write where the folder appears as an absolute path below /"
    words = "is not right; write a list of texts, for containers that name no command: [python, main.py]"
    assert str(invalid.value).splitlines() == [
        f'shoal.yaml: images."a".mounts.rel: "rel" {below}',
        f'shoal.yaml: images."a".mounts./: "/" {below}',
        f'shoal.yaml: images."a".command: "text" {words}',
        'shoal.yaml: images."a".comand: there is no such key; did you mean `command`?',
        'shoal.yaml: images."a".extra: there is no such key; there are: mounts, python, command, env, working_dir',
        f'shoal.yaml: images."b".command[1]: 5 {words}',
        'shoal.yaml: images."b".env.N: 4 is not text; put the value in quotes',
        'shoal.yaml: images."b".env.YES: true is not text; put the value in quotes',
        'shoal.yaml: images."b".working_dir: "here" is not right; '
        "write an absolute path in the pod, such as /workspace",
        'shoal.yaml: images."c": ["python"] is not right; '
        "write a mapping with keys such as mounts, python, command, env, working_dir",
    ]


def test_a_key_with_nothing_behind_it_is_as_good_as_none() -> None:
    assert read({"a": {"mounts": None, "command": None}, "b": None}).entries == read({"a": {}, "b": {}}).entries


def test_images_must_be_a_mapping() -> None:
    with pytest.raises(ImagesInvalid, match=r'images: \["a"\] is not right; write a mapping from image names'):
        read(["a"])


def test_paths_missing_on_this_machine_are_listed(tmp_path: Path) -> None:
    (tmp_path / "good" / "bin").mkdir(parents=True)
    entry = {"python": "bad", "mounts": {"/there": "good", "/gone": "gone", "/fresh": None}}
    images = read_images({"a": entry, "b": {"python": "good"}}, config_file="shoal.yaml", base=tmp_path)
    assert images.missing_paths() == [
        f'images."a".python: {tmp_path}/bad is no Python environment: it has no bin',
        f'images."a".mounts./gone: {tmp_path}/gone is not there',
    ]
