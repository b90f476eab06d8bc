"""The `images:` of a configuration: which entry an image selects, and every mistake in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.node.images import Images, ImagesInvalid, read_images
from shoal.node.sandbox.port import Mount

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


def test_the_message_about_a_missing_command_says_what_to_add_where() -> None:
    assert read({}).missing_command("acme/t:1", "main") == (
        'container main names no command and image "acme/t:1" has none here. Set `command` in the pod, or add an entry '
        '"acme/t:1" with `command:` under `images:` in shoal.yaml, for example: '
        "images: {'acme/t:1': {command: [python, main.py]}}; then stop the cluster and start it again"
    )


def test_every_mistake_is_listed_with_its_path() -> None:
    with pytest.raises(ImagesInvalid) as invalid:
        read({"a": {"mounts": {"rel": "x"}, "command": "text", "extra": 1}, "b": {"env": {"N": 4}}})
    assert str(invalid.value).splitlines() == [
        'shoal.yaml: images."a".mounts: Value error, rel: write where the folder appears as an absolute path below /',
        'shoal.yaml: images."a".command: Input should be a valid list',
        'shoal.yaml: images."a".extra: Extra inputs are not permitted',
        'shoal.yaml: images."b".env: Value error, N: put the value in quotes, variables are text',
    ]


def test_images_must_be_a_mapping() -> None:
    with pytest.raises(ImagesInvalid, match="must be a mapping"):
        read(["a"])
