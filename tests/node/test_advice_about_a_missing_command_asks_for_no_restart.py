"""A submitted job brings its own `images:`, so the advice about a missing command is to submit it again."""

from __future__ import annotations

from pathlib import Path

from shoal.node.images import Images, read_images
from shoal.node.messages import text
from shoal.node.projects import Project


def advice(images: Images) -> str:
    return text(Project("/home/you/job", {}).read_images(images).missing_command("acme/t:1", "main"))


def test_an_image_without_an_entry_gets_one_beside_the_job() -> None:
    assert advice(Images({}, "/etc/shoal.yaml")).endswith(
        'add an entry "acme/t:1" with `command:` under `images:` in /home/you/job/shoal.yaml, for example: images: '
        "{'acme/t:1': {command: [python, main.py]}}; then delete the job and submit it again"
    )


def test_an_entry_of_the_cluster_is_corrected_where_it_is() -> None:
    images = read_images({"acme/t:1": {}}, config_file="/etc/shoal.yaml", base=Path("/etc"))
    assert "under `images:` in /etc/shoal.yaml" in advice(images)
    assert advice(images).endswith("then stop the cluster and start it again")
