"""The write path: how an object a client sent becomes the next version in the store.

Every write passes the same steps, in the order of an API server: read it as its kind, fill in what was left out,
apply the kind's own rules, validate, note which manager owns which field, store. Nothing is stored before the last
check has passed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec

from shoal.cluster import object_validation
from shoal.cluster.admission import Admission
from shoal.cluster.registry import Core, Resource
from shoal.cluster.strategies import Generation, bumps_generation, keep_field
from shoal.cluster.types import Stored, WriteOptions, WriteResult
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
from shoal.kube.objects import Key, Obj
from shoal.kube.schemas import schema_of

NAME_ATTEMPTS = 8  # to generate a name that is free, as many as kube-apiserver makes
_SYSTEM_FIELDS = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")

Mutate = Callable[[Obj], Obj]


class Writer:
    """Creates and changes. It owns no state; the steps are in the order they are called."""

    def __init__(self, core: Core) -> None:
        self._core = core
        # Where Services have 127.x.y.z addresses the pods behind them do too.
        self._allow_loopback = core.settings.service_network.is_loopback

    # Creating

    def create(self, resource: Resource, namespace: str, obj: Obj, options: WriteOptions) -> WriteResult:
        """`obj` is taken over and changed."""
        decoded = object_validation.decode_object(resource.kind, obj, options.field_validation)
        meta = decoded.obj["metadata"]
        for name in _SYSTEM_FIELDS:
            meta.pop(name, None)
        # kube-apiserver ignores "0" and what is no number of 64 bits, and compares versions when it stores, which a dry
        # run does not.
        version = (meta.pop("resourceVersion", None) or "").lstrip("0")
        is_number = version.isascii() and version.isdecimal() and len(version) <= 20 and int(version) < 1 << 64
        if is_number and not options.dry_run:
            raise bad_request("resourceVersion should not be set on objects to be created")
        meta.pop("managedFields", None)
        written = self.add(resource, namespace, decoded.obj, options, tracked=False)
        return replace(written, created=True, warnings=(*decoded.warnings, *written.warnings))

    def add(self, resource: Resource, namespace: str, obj: Obj, options: WriteOptions, *, tracked: bool) -> WriteResult:
        """Store a decoded object that is not there yet; `tracked`: its managedFields are already right."""
        core, kind = self._core, resource.kind
        meta = obj["metadata"]
        self._check_definition(resource)
        self._set_namespace(resource, namespace, meta)
        self._check_namespace(resource, meta)
        key = self._ensure_name(resource, meta)
        warnings = _without_duplicate_owners(meta)
        spec = obj.get("spec") or {}
        filled_by_admission: list[str] = []
        for group in resource.strategy.admission_fills:
            if not any(name in spec for name in group):
                filled_by_admission += group
        object_validation.fill_defaults(kind, obj)
        admission = self._admission(resource)
        if admission is not None:
            warnings += tuple(admission.warn(obj, None))
            obj = admission.default(obj)
            meta = obj["metadata"]
        meta["uid"] = core.new_uid()
        meta["creationTimestamp"] = core.now()
        if not tracked:
            obj = self._track_created(resource, obj, options, filled_by_admission)
            meta = obj["metadata"]
        self._prepare_for_create(resource, obj)
        object_validation.check_new(kind, obj, allow_loopback=self._allow_loopback, admission=admission)
        self._check_absent(resource, key, meta)
        stored = self._store(resource, obj, None, options)
        warnings += object_validation.deviation_warnings(kind, obj)
        return WriteResult(resource.from_storage(stored), True, warnings, obj if resource.is_storage_version else None)

    def _admission(self, resource: Resource) -> Admission | None:
        return self._core.admissions.get(resource.kind.resource)

    def _set_namespace(self, resource: Resource, namespace: str, meta: Obj) -> None:
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
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            error = forbidden(resource.kind, str(meta.get("name") or ""), why)
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {namespace} is being terminated",
                "field": "metadata.namespace",
            }
            error.details = {**(error.details or {}), "causes": [cause]}
            raise error

    def _check_definition(self, resource: Resource) -> None:
        """Nothing is made of a kind that is going."""
        if not resource.kind.custom:
            return
        definition = self._core.definitions.table.objects.get(Key("", resource.storage_kind.resource))
        if definition is not None and definition.terminating:
            message = "create not allowed while custom resource definition is terminating"
            raise ApiError(
                405, "MethodNotAllowed", message, {"group": resource.kind.group, "kind": resource.kind.plural}
            )

    def _ensure_name(self, resource: Resource, meta: Obj) -> Key:
        namespace = meta.get("namespace") or ""
        if meta.get("name") or not meta.get("generateName"):
            return Key(namespace, meta.get("name") or "")
        for _ in range(NAME_ATTEMPTS):
            name = names.generate(meta["generateName"], self._core.rng)
            if Key(namespace, name) not in resource.table.objects:
                break
        meta["name"] = name
        return Key(namespace, name)

    def _prepare_for_create(self, resource: Resource, obj: Obj) -> None:
        """The kind's own first steps: admission, the first status, the first generation."""
        strategy, kind = resource.strategy, resource.kind
        if strategy.generation is not Generation.NONE:
            obj["metadata"]["generation"] = 1
        if strategy.admit is not None:
            strategy.admit(self._core, obj, None)
        if "status" in kind.subresources and not strategy.keeps_initial_status:
            obj.pop("status", None)
        if strategy.prepare_for_create is not None:
            strategy.prepare_for_create(self._core, obj)

    def _track_created(
        self, resource: Resource, obj: Obj, options: WriteOptions, filled_by_admission: list[str]
    ) -> Obj:
        """What admission filled in has no manager, nor has a status given on create: it is reset or the kind's."""
        status = obj.pop("status", None) if "status" in resource.kind.subresources else None
        filled = {name: obj["spec"].pop(name) for name in filled_by_admission if name in obj["spec"]}
        obj = apply.track(schema_of(resource.kind), None, obj, manager=options.field_manager, now=self._core.now())
        if filled:
            obj["spec"].update(filled)
        if status is not None:
            obj["status"] = status
        return obj

    def _check_absent(self, resource: Resource, key: Key, meta: Obj) -> None:
        existing = resource.table.objects.get(key)
        if existing is None:
            return
        error = already_exists(resource.kind, key.name)
        if (
            meta.get("generateName")
            and key.name.startswith(meta["generateName"])
            and len(meta["generateName"]) < len(key.name)
        ):
            error.message += ", the server was not able to generate a unique name for the object"
        if existing.terminating:
            error.message = f"object is being deleted: {error.message}"
        raise error

    # Changing

    def update(self, resource: Resource, key: Key, obj: Obj, options: WriteOptions, subresource: str) -> WriteResult:
        """PUT. `obj` is taken over and changed."""
        decoded = object_validation.decode_object(resource.kind, obj, options.field_validation)
        meta = decoded.obj["metadata"]
        name, namespace = meta.get("name") or "", meta.get("namespace")
        if not name:
            raise bad_request(
                f"the name of the object ({key.name} based on URL) was undeterminable: name must be provided"
            )
        if name != key.name:
            raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({key.name})")
        if key.namespace and namespace and namespace != key.namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        if key not in resource.table.objects and resource.strategy.create_on_update and not subresource:
            return self._create_by_update(resource, key, decoded, options)
        stored = self._core.stored(resource, key)
        if meta.get("uid") and meta["uid"] != stored.uid:
            why = f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: {stored.uid}"
            raise conflict(resource.kind, key.name, why)
        written = self.change(resource, key, lambda _: decoded.obj, options, subresource)
        return replace(written, warnings=(*decoded.warnings, *written.warnings))

    def _create_by_update(
        self, resource: Resource, key: Key, decoded: object_validation.DecodedObject, options: WriteOptions
    ) -> WriteResult:
        meta = decoded.obj["metadata"]
        if meta.get("uid"):
            why = f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: "
            raise conflict(resource.kind, key.name, why)
        for name in (*_SYSTEM_FIELDS, "resourceVersion", "managedFields"):
            meta.pop(name, None)
        written = self.add(resource, key.namespace, decoded.obj, options, tracked=False)
        return replace(written, created=True, warnings=(*decoded.warnings, *written.warnings))

    def change(
        self,
        resource: Resource,
        key: Key,
        mutate: Mutate,
        options: WriteOptions,
        subresource: str = "",
        *,
        tracked: bool = False,
    ) -> WriteResult:
        """Replace the stored object by what `mutate` makes of it (changing nothing in it), by the rules of an
        update.
        """
        stored = self._core.stored(resource, key)
        old = resource.decode(stored)
        new = mutate(old)
        if new["metadata"] is old["metadata"]:  # filled in below
            new["metadata"] = dict(old["metadata"])
        self._set_namespace(resource, key.namespace, new["metadata"])
        self._check_version(resource, new, stored)
        warnings = _without_duplicate_owners(new["metadata"])
        self._prepare_for_update(resource, new, old, subresource)
        # Metadata and status are always accepted: an object that today's rules would reject can still be finalized.
        changes_content = any(new.get(name) != old.get(name) for name in {*new, *old} - {"metadata", "status"})
        admission = self._admission(resource) if changes_content else None
        if admission is not None:
            warnings += tuple(admission.warn(new, old))
            new = admission.default(new)
        if not tracked:
            new = apply.track(
                schema_of(resource.kind), old, new,
                manager=options.field_manager, now=self._core.now(), subresource=subresource,
            )  # fmt: skip
        object_validation.check_change(
            resource.kind, new, old, subresource, allow_loopback=self._allow_loopback, admission=admission
        )
        if object_validation.is_unchanged(new, old):
            return WriteResult(resource.from_storage(stored), warnings=warnings)
        is_held = new["metadata"].get("finalizers") or old["metadata"].get("deletionGracePeriodSeconds")
        if resource.kind == kinds.NAMESPACE:
            is_held = is_held or (new.get("spec") or {}).get("finalizers")
        if stored.terminating and not is_held:
            # The last finalizer went from an object that was only waiting for that.
            final = self._core.build_stored(resource, new, 0, stored)
            if not options.dry_run:
                self._core.remove(resource, key)
            return WriteResult(resource.from_storage(final), warnings=warnings)
        warnings += object_validation.deviation_warnings(resource.kind, new)
        after = resource.from_storage(self._store(resource, new, stored, options))
        return WriteResult(after, False, warnings, new if resource.is_storage_version else None)

    def _check_version(self, resource: Resource, new: Obj, stored: Stored) -> None:
        version = new["metadata"].get("resourceVersion")
        if version in (None, "", "0"):
            if not resource.strategy.unconditional_update:
                message = "Invalid value: 0: must be specified for an update"
                cause = Cause("FieldValueInvalid", message, "metadata.resourceVersion")
                error = invalid(resource.kind, stored.key.name, [cause])
                # Kubernetes names the resource here, not the kind.
                where = f'{resource.kind.resource} "{stored.key.name}"'
                error.message = f"{where} is invalid: metadata.resourceVersion: {message}"
                error.details = {**(error.details or {}), "kind": resource.kind.plural}
                raise error
            new["metadata"]["resourceVersion"] = str(stored.revision)
        elif version != str(stored.revision):
            if not str(version).isdigit():
                message = f'Invalid value: "{version}": must be an integer'
                cause = Cause("FieldValueInvalid", message, "metadata.resourceVersion")
                raise invalid(resource.kind, stored.key.name, [cause])
            raise stale(resource.kind, stored.key.name)

    def _prepare_for_update(self, resource: Resource, new: Obj, old: Obj, subresource: str) -> None:
        """Take back what this kind of write may not touch, fill in what it left out, count the generation."""
        strategy, kind = resource.strategy, resource.kind
        _keep_metadata(new["metadata"], old["metadata"])
        if subresource == "status":
            self._prepare_for_status_update(resource, new, old)
        else:
            if "status" in kind.subresources:
                keep_field(new, old, "status")
            if strategy.prepare_for_update is not None and subresource == "":
                strategy.prepare_for_update(self._core, new, old)
        object_validation.fill_defaults(kind, new, old)
        if strategy.admit is not None and subresource == "":
            strategy.admit(self._core, new, old)
        if subresource in ("", "scale") and bumps_generation(strategy.generation, new, old):
            new["metadata"]["generation"] = (old["metadata"].get("generation") or 0) + 1

    def _prepare_for_status_update(self, resource: Resource, new: Obj, old: Obj) -> None:
        strategy = resource.strategy
        if strategy.prepare_for_status_update is not None:
            strategy.prepare_for_status_update(self._core, new, old)
            return
        if strategy.status_writes_metadata:
            keep_field(new, old, "spec")
            return
        managed = new["metadata"].get("managedFields")
        for name in {*new, *old} - {"status"}:
            keep_field(new, old, name)
        new["metadata"] = dict(old["metadata"])
        if managed is not None:
            new["metadata"]["managedFields"] = managed

    # Storing

    def _store(self, resource: Resource, obj: Obj, before: Stored | None, options: WriteOptions) -> Stored:
        if options.dry_run:
            return self._core.build_stored(resource, obj, 0, before)
        return self._core.put(resource, obj, before)


def _keep_metadata(new: Obj, old: Obj) -> None:
    """What no write may change or leave out."""
    keep_field(new, old, "creationTimestamp")
    keep_field(new, old, "generation")
    keep_field(new, old, "selfLink")
    new.setdefault("uid", old["uid"])
    if not new["uid"]:
        new["uid"] = old["uid"]
    if old.get("deletionTimestamp"):
        new["deletionTimestamp"] = old["deletionTimestamp"]
    elif new.get("deletionTimestamp") is None:
        new.pop("deletionTimestamp", None)  # any other value is an attempt to delete by writing, and refused
    if new.get("deletionGracePeriodSeconds") is None:
        keep_field(new, old, "deletionGracePeriodSeconds")
    if new.get("managedFields") is None and "managedFields" in old:
        new["managedFields"] = old["managedFields"]


def _without_duplicate_owners(meta: Obj) -> tuple[str, ...]:
    references = meta.get("ownerReferences")
    if not references or len(references) == 1:
        return ()
    kept: list[Obj] = []
    duplicates = []
    seen: set[bytes] = set()
    for reference in references:
        written = msgspec.json.encode(reference, order="sorted")
        if written in seen:
            duplicates.append(str(reference.get("uid")))
        else:
            seen.add(written)
            kept.append(reference)
    if not duplicates:
        return ()
    meta["ownerReferences"] = kept
    return (
        f".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may "
        f"reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
        f"{', '.join(duplicates)}",
    )
