"""The write path: how an object somebody sent becomes the next version in the store.

Every write goes through the same steps, in the order of an API server: read it as its kind, fill in what was
left out, let the kind have its say, validate, note who manages which field, store. Nothing is stored before
the last check has passed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec

from shoal.cluster import object_validation
from shoal.cluster.admission import Admission
from shoal.cluster.registry import Core, Resource
from shoal.cluster.strategies import Generation, carry, counts
from shoal.cluster.types import Stored, WriteOptions, Written
from shoal.kube import apply, kinds, names
from shoal.kube.errors import (
    ApiError,
    Cause,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    invalid,
    not_found,
    stale,
)
from shoal.kube.kinds import Kind
from shoal.kube.objects import Key, Obj
from shoal.kube.schemas import schema_of

NAME_ATTEMPTS = 8
_SYSTEM_FIELDS = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")

Change = Callable[[Obj], Obj]


class Writer:
    """Creates and changes. It owns no state; the steps are in the order they are called."""

    def __init__(self, core: Core) -> None:
        self._core = core
        # Where Services have 127.x.y.z addresses the pods behind them do too.
        self._lives_on_loopback = core.settings.service_network.is_loopback

    # Creating

    def create(self, resource: Resource, namespace: str, obj: Obj, options: WriteOptions) -> Written:
        """`obj` is taken over and changed."""
        shape = object_validation.decoded(resource.kind, obj, options.field_validation)
        meta = shape.obj["metadata"]
        for name in _SYSTEM_FIELDS:
            meta.pop(name, None)
        if meta.get("resourceVersion"):
            raise bad_request("resourceVersion should not be set on objects to be created")
        meta.pop("managedFields", None)
        written = self.add(resource, namespace, shape.obj, options, tracked=False)
        return replace(written, created=True, warnings=(*shape.warnings, *written.warnings))

    def add(self, resource: Resource, namespace: str, obj: Obj, options: WriteOptions, *, tracked: bool) -> Written:
        """Store a decoded object that is not there yet; `tracked`: its managedFields are already right."""
        core, kind = self._core, resource.kind
        meta = obj["metadata"]
        self._check_definition(resource)
        self._place(resource, namespace, meta)
        self._check_namespace(resource, meta)
        key = self._name(resource, meta)
        warnings = _without_duplicate_owners(meta)
        unasked = _unasked(resource, obj)
        object_validation.fill_defaults(kind, obj)
        admission = self._admission(resource)
        if admission is not None:
            warnings += tuple(admission.warn(obj, None))
            obj = admission.default(obj)
            meta = obj["metadata"]
        meta["uid"] = core.new_uid()
        meta["creationTimestamp"] = core.now()
        if not tracked:
            obj = self._tracked_first(resource, obj, options, unasked)
            meta = obj["metadata"]
        self._begin(resource, obj)
        object_validation.check_new(kind, obj, allow_loopback=self._lives_on_loopback, admission=admission)
        self._check_absent(resource, key, meta)
        stored = self._store(resource, obj, None, options)
        warnings += self._remarks(kind, obj)
        return Written(resource.show(stored), True, warnings, obj if resource.shows_what_is_stored else None)

    def _remarks(self, kind: Kind, obj: Obj) -> tuple[str, ...]:
        return object_validation.remarks(kind, obj, self._core.admissions)

    def _admission(self, resource: Resource) -> Admission | None:
        return self._core.admissions.get(resource.kind.resource)

    def _place(self, resource: Resource, namespace: str, meta: Obj) -> None:
        if not resource.kind.namespaced:
            meta.pop("namespace", None)
            return
        given = meta.get("namespace")
        if given and given != namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        meta["namespace"] = namespace

    def _check_namespace(self, resource: Resource, meta: Obj) -> None:
        if not resource.kind.namespaced:
            return
        namespace = meta["namespace"]
        stored = self._core.namespaces.table.objects.get(Key("", namespace))
        if stored is None:
            raise not_found(kinds.NAMESPACE, namespace)
        if stored.fields["status.phase"] == "Terminating":
            raise _leaving_namespace(resource, str(meta.get("name") or ""), namespace)

    def _check_definition(self, resource: Resource) -> None:
        """Nothing is made of a kind that is going."""
        if not resource.kind.custom:
            return
        definition = self._core.definitions.table.objects.get(Key("", resource.home.resource))
        if definition is not None and definition.leaving:
            message = "create not allowed while custom resource definition is terminating"
            raise ApiError(
                405, "MethodNotAllowed", message, {"group": resource.kind.group, "kind": resource.kind.plural}
            )

    def _name(self, resource: Resource, meta: Obj) -> Key:
        namespace = meta.get("namespace") or ""
        if meta.get("name") or not meta.get("generateName"):
            return Key(namespace, meta.get("name") or "")
        for _ in range(NAME_ATTEMPTS):
            name = names.generate(meta["generateName"], self._core.chance)
            if Key(namespace, name) not in resource.table.objects:
                break
        meta["name"] = name
        return Key(namespace, name)

    def _begin(self, resource: Resource, obj: Obj) -> None:
        """The kind's own first words: admission, the first status, the first generation."""
        rules, kind = resource.rules, resource.kind
        if rules.generation is not Generation.NONE:
            obj["metadata"]["generation"] = 1
        if rules.admit is not None:
            rules.admit(self._core, obj, None)
        if "status" in kind.subresources and not rules.keeps_first_status:
            obj.pop("status", None)
        if rules.begin is not None:
            rules.begin(self._core, obj)

    def _tracked_first(self, resource: Resource, obj: Obj, options: WriteOptions, unasked: list[str]) -> Obj:
        """Nobody manages what admission filled in, nor a status given on create, which is reset or the kind's own."""
        status = obj.pop("status", None) if "status" in resource.kind.subresources else None
        filled = {name: obj["spec"].pop(name) for name in unasked if name in obj["spec"]}
        obj = apply.track(schema_of(resource.kind), None, obj, manager=options.field_manager, now=self._core.now())
        if filled:
            obj["spec"].update(filled)
        if status is not None:
            obj["status"] = status
        return obj

    def _check_absent(self, resource: Resource, key: Key, meta: Obj) -> None:
        there = resource.table.objects.get(key)
        if there is None:
            return
        error = already_exists(resource.kind, key.name)
        if (
            meta.get("generateName")
            and key.name.startswith(meta["generateName"])
            and len(meta["generateName"]) < len(key.name)
        ):
            error.message += ", the server was not able to generate a unique name for the object"
        if there.leaving:
            error.message = f"object is being deleted: {error.message}"
        raise error

    # Changing

    def update(self, resource: Resource, key: Key, obj: Obj, options: WriteOptions, subresource: str) -> Written:
        """PUT. `obj` is taken over and changed."""
        shape = object_validation.decoded(resource.kind, obj, options.field_validation)
        meta = shape.obj["metadata"]
        _check_name(meta, key)
        if key not in resource.table.objects and resource.rules.create_on_update and not subresource:
            return self._create_by_update(resource, key, shape, options)
        stored = self._core.stored(resource, key)
        if meta.get("uid") and meta["uid"] != stored.uid:
            why = f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: {stored.uid}"
            raise conflict(resource.kind, key.name, why)
        written = self.change(resource, key, lambda _: shape.obj, options, subresource)
        return replace(written, warnings=(*shape.warnings, *written.warnings))

    def _create_by_update(
        self, resource: Resource, key: Key, shape: object_validation.Shape, options: WriteOptions
    ) -> Written:
        meta = shape.obj["metadata"]
        if meta.get("uid"):
            why = f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: "
            raise conflict(resource.kind, key.name, why)
        for name in (*_SYSTEM_FIELDS, "resourceVersion", "managedFields"):
            meta.pop(name, None)
        written = self.add(resource, key.namespace, shape.obj, options, tracked=False)
        return replace(written, created=True, warnings=(*shape.warnings, *written.warnings))

    def change(
        self,
        resource: Resource,
        key: Key,
        make: Change,
        options: WriteOptions,
        subresource: str = "",
        *,
        tracked: bool = False,
    ) -> Written:
        """Replace the stored object by what `make` makes of it (changing nothing in it), by the rules of an update."""
        stored = self._core.stored(resource, key)
        old = resource.live(stored)
        new = make(old)
        if new["metadata"] is old["metadata"]:  # filled in below
            new["metadata"] = dict(old["metadata"])
        self._place(resource, key.namespace, new["metadata"])
        self._check_version(resource, new, stored)
        warnings = _without_duplicate_owners(new["metadata"])
        self._keep(resource, new, old, subresource)
        admission = self._admission(resource) if _touches_content(new, old) else None
        if admission is not None:
            warnings += tuple(admission.warn(new, old))
            new = admission.default(new)
        if not tracked:
            new = apply.track(
                schema_of(resource.kind), old, new,
                manager=options.field_manager, now=self._core.now(), subresource=subresource,
            )  # fmt: skip
        object_validation.check_change(
            resource.kind, new, old, subresource, allow_loopback=self._lives_on_loopback, admission=admission
        )
        if object_validation.is_same(new, old):
            return Written(resource.show(stored), warnings=warnings)
        if _is_released(resource, new, stored, old):
            return Written(self._release(resource, key, new, stored, options), warnings=warnings)
        warnings += self._remarks(resource.kind, new)
        after = resource.show(self._store(resource, new, stored, options))
        return Written(after, False, warnings, new if resource.shows_what_is_stored else None)

    def _check_version(self, resource: Resource, new: Obj, stored: Stored) -> None:
        version = new["metadata"].get("resourceVersion")
        if version in (None, "", "0"):
            if not resource.rules.unconditional_update:
                raise _version_missing(resource, stored.key.name)
            new["metadata"]["resourceVersion"] = str(stored.revision)
        elif version != str(stored.revision):
            if not str(version).isdigit():
                message = f'Invalid value: "{version}": strconv.ParseUint: parsing "{version}": invalid syntax'
                cause = Cause("FieldValueInvalid", message, "metadata.resourceVersion")
                raise invalid(resource.kind, stored.key.name, [cause])
            raise stale(resource.kind, stored.key.name)

    def _keep(self, resource: Resource, new: Obj, old: Obj, subresource: str) -> None:
        """Take back what this kind of write may not touch, fill in what it left out, count the generation."""
        rules, kind = resource.rules, resource.kind
        _keep_metadata(new["metadata"], old["metadata"])
        if subresource == "status":
            self._keep_beside_status(resource, new, old)
        else:
            if "status" in kind.subresources:
                carry(new, old, "status")
            if rules.keep is not None and subresource == "":
                rules.keep(self._core, new, old)
        object_validation.fill_defaults(kind, new, old)
        if rules.admit is not None and subresource == "":
            rules.admit(self._core, new, old)
        if subresource in ("", "scale") and counts(rules.generation, new, old):
            new["metadata"]["generation"] = (old["metadata"].get("generation") or 0) + 1

    def _keep_beside_status(self, resource: Resource, new: Obj, old: Obj) -> None:
        rules = resource.rules
        if rules.keep_beside_status is not None:
            rules.keep_beside_status(self._core, new, old)
            return
        if rules.status_writes_metadata:
            carry(new, old, "spec")
            return
        managed = new["metadata"].get("managedFields")
        for name in {*new, *old} - {"status"}:
            carry(new, old, name)
        new["metadata"] = dict(old["metadata"])
        if managed is not None:
            new["metadata"]["managedFields"] = managed

    # Storing

    def _store(self, resource: Resource, obj: Obj, before: Stored | None, options: WriteOptions) -> Stored:
        if options.dry_run:
            return self._core.made(resource, obj, 0, before)
        return self._core.put(resource, obj, before)

    def _release(self, resource: Resource, key: Key, new: Obj, stored: Stored, options: WriteOptions) -> Stored:
        """The last finalizer went from an object that was only waiting for that."""
        last = self._core.made(resource, new, 0, stored)
        if not options.dry_run:
            self._core.remove(resource, key)
        return resource.show(last)


def _touches_content(new: Obj, old: Obj) -> bool:
    """An object that rules of today would refuse may still be let go of: metadata and status are nobody's spec."""
    return any(new.get(name) != old.get(name) for name in {*new, *old} - {"metadata", "status"})


def _unasked(resource: Resource, obj: Obj) -> list[str]:
    spec = obj.get("spec") or {}
    groups = (group for group in resource.rules.admission_fills if not any(name in spec for name in group))
    return [name for group in groups for name in group]


def _check_name(meta: Obj, key: Key) -> None:
    name = meta.get("name") or ""
    if not name:
        raise bad_request(f"the name of the object ({key.name} based on URL) was undeterminable: name must be provided")
    if name != key.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({key.name})")
    namespace = meta.get("namespace")
    if key.namespace and namespace and namespace != key.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def _keep_metadata(new: Obj, old: Obj) -> None:
    """What no write may change or leave out."""
    carry(new, old, "creationTimestamp")
    carry(new, old, "generation")
    carry(new, old, "selfLink")
    new.setdefault("uid", old["uid"])
    if not new["uid"]:
        new["uid"] = old["uid"]
    if old.get("deletionTimestamp"):
        new["deletionTimestamp"] = old["deletionTimestamp"]
    elif new.get("deletionTimestamp") is None:
        new.pop("deletionTimestamp", None)  # any other value is an attempt to delete by writing, and refused
    if new.get("deletionGracePeriodSeconds") is None:
        carry(new, old, "deletionGracePeriodSeconds")
    if new.get("managedFields") is None and "managedFields" in old:
        new["managedFields"] = old["managedFields"]


def _without_duplicate_owners(meta: Obj) -> tuple[str, ...]:
    references = meta.get("ownerReferences")
    if not references or len(references) == 1:
        return ()
    kept: list[Obj] = []
    doubled = []
    seen: set[bytes] = set()
    for reference in references:
        written = msgspec.json.encode(reference, order="sorted")
        if written in seen:
            doubled.append(str(reference.get("uid")))
        else:
            seen.add(written)
            kept.append(reference)
    if not doubled:
        return ()
    meta["ownerReferences"] = kept
    return (
        f".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may "
        f"reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
        f"{', '.join(doubled)}",
    )


def _is_released(resource: Resource, new: Obj, stored: Stored, old: Obj) -> bool:
    if not stored.leaving or new["metadata"].get("finalizers"):
        return False
    if resource.kind == kinds.NAMESPACE and (new.get("spec") or {}).get("finalizers"):
        return False
    return not old["metadata"].get("deletionGracePeriodSeconds")


def _leaving_namespace(resource: Resource, name: str, namespace: str) -> ApiError:
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    error = forbidden(resource.kind, name, why)
    error.details = {
        **(error.details or {}),
        "causes": [
            {
                "reason": "NamespaceTerminating",
                "message": f"namespace {namespace} is being terminated",
                "field": "metadata.namespace",
            }
        ],
    }
    return error


def _version_missing(resource: Resource, name: str) -> ApiError:
    message = "Invalid value: 0: must be specified for an update"
    error = invalid(resource.kind, name, [Cause("FieldValueInvalid", message, "metadata.resourceVersion")])
    error.message = f'{resource.kind.resource} "{name}" is invalid: metadata.resourceVersion: {message}'
    error.details = {**(error.details or {}), "kind": resource.kind.plural}
    return error
