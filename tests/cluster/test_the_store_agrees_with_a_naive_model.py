"""Promises, whatever the order of operations: the store equals a dictionary, and history replays to the state."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kit.cluster_objects import config_map, key, machinery, so_far
from shoal.cluster.client import PatchType
from shoal.cluster.store import HistoryLimits
from shoal.cluster.types import ListOptions, WatchOptions
from shoal.kube import kinds
from shoal.kube.errors import ApiError

NAMES = st.sampled_from(["a", "b", "c", "d-e", "d"])
VALUES = st.sampled_from(["1", "2", "3"])


def attempt(call, *args) -> ApiError | None:
    try:
        call(*args)
    except ApiError as error:
        return error
    return None


class StoreAndModel(RuleBasedStateMachine):
    """The model: name -> (value, label) of the config maps of one namespace, and every state there has been."""

    @initialize(changes=st.sampled_from([5, 1000]))
    def begin(self, changes):
        self.cluster = machinery(limits=HistoryLimits(changes=changes))
        self.model: dict[str, tuple[str, str]] = {}
        self.past: dict[int, dict[str, tuple[str, str]]] = {self.cluster.revision: {}}

    def note(self):
        self.past[self.cluster.store.revision] = dict(self.model)

    @rule(name=NAMES, value=VALUES, label=VALUES)
    def create(self, name, value, label):
        sent = config_map(name, {"value": value}, labels={"label": label})
        refused = attempt(self.cluster.create, kinds.CONFIG_MAP, "default", sent)
        assert (refused is not None) == (name in self.model)
        if refused is not None:
            assert refused.reason == "AlreadyExists"
            return
        self.model[name] = (value, label)
        self.note()

    @rule(name=NAMES, value=VALUES, label=VALUES, stale=st.booleans())
    def update(self, name, value, label, stale):
        sent = config_map(name, {"value": value}, labels={"label": label})
        if stale:
            sent["metadata"]["resourceVersion"] = "1"
        refused = attempt(self.cluster.update, kinds.CONFIG_MAP, key(name), sent)
        assert (refused is not None) == (stale or name not in self.model)
        if refused is not None:
            assert refused.code == (404 if name not in self.model else 409)
            return
        self.model[name] = (value, label)
        self.note()

    @rule(name=NAMES, value=VALUES)
    def patch(self, name, value):
        change = {"data": {"value": value}}
        refused = attempt(self.cluster.patch, kinds.CONFIG_MAP, key(name), change, PatchType.MERGE)
        assert (refused is not None) == (name not in self.model)
        if refused is not None:
            return
        self.model[name] = (value, self.model[name][1])
        self.note()

    @rule(name=NAMES)
    def delete(self, name):
        refused = attempt(self.cluster.delete, kinds.CONFIG_MAP, key(name))
        assert (refused is not None) == (name not in self.model)
        if refused is not None:
            return
        del self.model[name]
        self.note()

    @rule(label=VALUES)
    def select(self, label):
        found = self.listed(ListOptions(labels=f"label={label}"))
        assert found == {name: both for name, both in self.model.items() if both[1] == label}

    @rule(data=st.data())
    def list_the_past(self, data):
        revision = data.draw(st.sampled_from(sorted(self.past)))
        options = ListOptions(resource_version=str(revision), resource_version_match="Exact")
        refused = attempt(self.listed, options)
        if revision < self.cluster.store.compacted:
            assert refused is not None
            assert refused.code == 410
        else:
            assert self.listed(options) == self.past[revision]

    @rule(limit=st.integers(1, 3))
    def page_through(self, limit):
        found, token = [], ""
        while True:
            page = self.cluster.list(kinds.CONFIG_MAP, "default", ListOptions(limit=limit, continue_token=token))
            found += [s.key.name for s in page.items]
            token = page.continue_token
            if not token:
                break
        assert found == sorted(self.model)

    @rule(data=st.data(), labels=st.sampled_from(["", "label=1", "label!=2"]))
    def replay(self, data, labels):
        """A watch from any version, applied to the state of that version, gives the state of now."""
        revision = data.draw(st.sampled_from(sorted(self.past)))

        def selected(state):
            kept = {"": lambda _: True, "label=1": lambda v: v == "1", "label!=2": lambda v: v != "2"}[labels]
            return {name: both for name, both in state.items() if kept(both[1])}

        watch = self.cluster.watch(
            kinds.CONFIG_MAP, "default", WatchOptions(resource_version=str(revision), labels=labels)
        )
        if revision < self.cluster.store.compacted:
            with pytest.raises(ApiError, match="too old resource version"):
                asyncio.run(so_far(watch))
            return
        events = asyncio.run(so_far(watch))
        state = selected(self.past[revision])
        for event in events:
            event_object = event.object()
            name = event_object["metadata"]["name"]
            assert (name in state) == (event.type != "ADDED")
            if event.type == "DELETED":
                del state[name]
            else:
                state[name] = (event_object["data"]["value"], event_object["metadata"]["labels"]["label"])
        assert state == selected(self.model)

    def listed(self, options=None):
        page = self.cluster.list(kinds.CONFIG_MAP, "default", options)
        objects = [stored.obj() for stored in page.items]
        assert [o["metadata"]["name"] for o in objects] == sorted(o["metadata"]["name"] for o in objects)
        return {o["metadata"]["name"]: (o["data"]["value"], o["metadata"]["labels"]["label"]) for o in objects}

    @invariant()
    def the_store_is_the_model(self):
        if hasattr(self, "cluster"):
            assert self.listed() == self.model


StoreAndModel.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestStoreAndModel = StoreAndModel.TestCase
