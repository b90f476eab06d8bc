"""An init container that fetches a git repository into a volume, which the containers of the pod mount."""

from __future__ import annotations

import posixpath
from typing import Annotated, Any

import msgspec
from pydantic import Field, ValidationError

from shoal.dialects.validation_errors import StrictModel, causes
from shoal.kube.errors import Cause
from shoal.kube.objects import Obj
from shoal.kube.validation.errors import invalid

CONTAINER, VOLUME, FOLDER = "git-sync-code", "git-sync", "/git"
LONGEST = 16 * 1024  # characters of a configuration


class GitSync(StrictModel):
    """What is fetched. Passwords are not written here: `credentials` names a Secret with `username` and `password`."""

    source: Annotated[str, Field(min_length=1, max_length=2000)]
    image: str = "kubedl/git-sync:v1"
    root_path: str = "/code"
    dest_path: Annotated[str, Field(pattern=r"^([A-Za-z0-9_.-]+/?)*$", max_length=200)] = ""
    branch: str = ""
    revision: str = ""
    depth: Annotated[int, Field(ge=0)] = 0
    max_failures: Annotated[int, Field(ge=0)] = 3
    ssh: bool = False
    ssh_file: str = ""
    credentials: str = ""
    envs: list[dict[str, Any]] = Field(default_factory=list)

    @property
    def folder(self) -> str:
        """Below the working folder of a container: the name of the repository, unless another is given."""
        return self.dest_path or posixpath.basename(self.source).removesuffix(".git")


def read_git_sync(text: str, path: str) -> GitSync | list[Cause]:
    """The configuration in an annotation, or every mistake of it."""
    if len(text) > LONGEST:
        return [invalid(path, f"{text[:20]}…", f"must not be longer than {LONGEST} characters")]
    try:
        written = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError) as wrong:
        return [invalid(path, text[:40], f"must be a JSON object: {wrong}")]
    try:
        found = GitSync.model_validate(written)
        if found.folder in ("", ".", "..") or ".." in found.folder.split("/"):
            return [invalid(f"{path}.destPath", found.folder, "must be a folder below the working folder")]
        return found
    except ValidationError as wrong:
        secrets = {"password": "write it into a Secret and name that in credentials"}
        return causes(wrong, prefix=path, right={**secrets, "user": secrets["password"]})


def add_git_sync(spec: Obj, wanted: GitSync) -> None:
    """Before the init containers there are, which may need the files."""
    variables = {
        "GIT_SYNC_REPO": wanted.source,
        "GIT_SYNC_ROOT": FOLDER,
        "GIT_SYNC_DEST": wanted.folder,
        "GIT_SYNC_ONE_TIME": "true",
        "GIT_SYNC_MAX_SYNC_FAILURES": str(wanted.max_failures),
        "GIT_SYNC_BRANCH": wanted.branch,
        "GIT_SYNC_REV": wanted.revision,
        "GIT_SYNC_DEPTH": str(wanted.depth) if wanted.depth else "",
        "GIT_SYNC_SSH": "true" if wanted.ssh else "",
        "GIT_SSH_KEY_FILE": wanted.ssh_file,
    }
    env: list[Obj] = [{"name": name, "value": value} for name, value in variables.items() if value]
    for name in ("username", "password") if wanted.credentials else ():
        secret = {"secretKeyRef": {"name": wanted.credentials, "key": name}}
        env.append({"name": f"GIT_SYNC_{name.upper()}", "valueFrom": secret})
    fetch = {
        "name": CONTAINER,
        "image": wanted.image,
        "env": [*env, *wanted.envs],
        "volumeMounts": [{"name": VOLUME, "mountPath": FOLDER}],
    }
    spec["volumes"] = [*(spec.get("volumes") or ()), {"name": VOLUME, "emptyDir": {}}]
    spec["initContainers"] = [fetch, *(spec.get("initContainers") or ())]
    for container in spec["containers"]:
        working_folder = container.get("workingDir") or wanted.root_path
        mount = {
            "name": VOLUME,
            "mountPath": posixpath.join(working_folder, wanted.folder),
            "subPath": wanted.folder,
        }
        container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]
