"""Owner references: which objects own an object, which controls it, and which wait for its deletion.

References name an owner by kind and name for the reader, but ownership is decided by uid: a namesake created later owns
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.kube.objects import Obj, name_of, uid_of


def owners_of(obj: Mapping[str, Any]) -> list[Obj]:
    return (obj.get("metadata") or {}).get("ownerReferences") or []


def controller_of(obj: Mapping[str, Any]) -> Obj | None:
    """The reference of the one owner that manages the object, or None."""
    return next((owner for owner in owners_of(obj) if owner.get("controller") is True), None)


def owner_reference(owner: Mapping[str, Any], controller: bool = True, block: bool = True) -> Obj:
    """A reference to `owner`, ready to be put into another object's metadata.ownerReferences.

    `block` makes a foreground deletion of the owner wait until the other object is deleted.
    """
    reference: Obj = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name_of(owner),
        "uid": uid_of(owner),
    }
    if controller:
        reference["controller"] = True
    if block:
        reference["blockOwnerDeletion"] = True
    return reference


def is_controlled_by(obj: Mapping[str, Any], owner: Mapping[str, Any] | str) -> bool:
    """Whether the reference with `controller` carries the uid of `owner` (an object, or the uid itself)."""
    uid = owner if isinstance(owner, str) else uid_of(owner)
    controller = controller_of(obj)
    return bool(uid) and controller is not None and controller.get("uid") == uid
