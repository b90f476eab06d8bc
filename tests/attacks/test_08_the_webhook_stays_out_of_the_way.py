"""A review of a huge job costs work in proportion to its size, in a thread, and bodies have a limit."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from typing import Any

import aiohttp
import pytest
from click.testing import CliRunner

from kit.frameworks import framework, role
from shoal.cli.commands.install import command as install
from shoal.controller_runtime.health import Address, serve_http
from shoal.dialects.framework import DIALECT
from shoal.dialects.framework.spec import repeated_roles
from shoal.install.manifests import render
from shoal.install.options import InstallOptions
from shoal.operator.webhook import CHECKED_AT_ONCE, ReviewedKind, ReviewLimits, _handler, validate

REVIEW = {
    "request": {
        "uid": "r",
        "kind": {"group": "g", "kind": "K"},
        "object": {"metadata": {"name": "a"}},
    }
}


class Name(str):
    """A role's name that counts how often it is compared."""

    compared = 0
    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)


def calls_of_a_review(count: int) -> int:
    """How many calls, in Python and C, the whole review of so many roles makes."""
    job = framework(*({**role("", 1), "name": f"{count}r{number}"} for number in range(count)))
    calls = 0

    def count_call(_: Any, event: str, __: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count_call)
    try:
        answered = validate(DIALECT, {"object": job}, lambda _: [])
    finally:
        sys.setprofile(before)
    assert answered == {"allowed": True}
    return calls


def test_08_a_review_makes_calls_in_proportion_to_the_number_of_roles():
    calls_of_a_review(1)  # the schema is read and compiled once
    few, many = calls_of_a_review(250), calls_of_a_review(1000)
    assert many < 4.1 * few


def test_08_a_review_compares_names_in_proportion_to_their_number():
    count = 5_000
    roles = [{**role("", 1), "name": Name(f"r{number}")} for number in range(count)]
    Name.compared = 0
    assert repeated_roles(framework(*roles)["spec"]) == []

    assert Name.compared < 20 * count


def test_08_a_review_of_60000_roles_is_refused_with_the_limit():
    roles = [{"name": f"r{number}"} for number in range(60_000)]
    answered = validate(DIALECT, {"object": framework(*roles)}, lambda _: [])

    assert not answered["allowed"]
    assert "spec.taskRoles" in answered["status"]["message"]
    assert "9999 or fewer" in answered["status"]["message"]


async def posted(port: int, body: Any) -> int:
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"http://127.0.0.1:{port}/check", data=body) as answered,
    ):
        return answered.status


async def test_08_reviews_are_checked_outside_the_event_loop_and_few_at_a_time():
    checked, at_once, most = 0, 0, 0
    guard, may_end, are_full = threading.Lock(), threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def judge(_: Any, __: Any) -> dict[str, Any]:
        nonlocal checked, at_once, most
        with guard:
            checked, at_once = checked + 1, at_once + 1
            most = max(most, at_once)
            if at_once == CHECKED_AT_ONCE:
                loop.call_soon_threadsafe(are_full.set)
        assert threading.current_thread() is not threading.main_thread()
        may_end.wait()
        with guard:
            at_once -= 1
        return {"allowed": True}

    handler = _handler({("g", "K"): ReviewedKind(judge)}, None, ReviewLimits())
    async with serve_http("reviews", Address("127.0.0.1", 0), post={"/check": handler}) as port:
        reviews = [asyncio.create_task(posted(port, json.dumps(REVIEW))) for _ in range(3 * CHECKED_AT_ONCE)]
        await are_full.wait()  # the event loop goes on while reviews are checked
        may_end.set()

        assert await asyncio.gather(*reviews) == [200] * len(reviews)
    assert (checked, most) == (len(reviews), CHECKED_AT_ONCE)


async def test_08_a_body_beyond_the_limit_is_refused():
    handler = _handler({}, None, ReviewLimits())
    async with serve_http("reviews", Address("127.0.0.1", 0), post={"/check": handler}) as port:
        assert await posted(port, b" " * (9 << 20)) == 413


def ingress(options: InstallOptions) -> list[Any]:
    (policy,) = [each for each in render(options) if each["kind"] == "NetworkPolicy"]
    found: list[Any] = policy["spec"]["ingress"]
    return found


def test_08_only_the_api_server_reaches_the_webhook_where_it_is_known():
    pages, webhook = ingress(InstallOptions(webhook=True, apiServers=("10.0.0.0/24", "fd00::1/128")))

    assert {port["port"] for port in pages["ports"]} == {"metrics", "health"}
    assert webhook == {
        "ports": [{"port": "webhook", "protocol": "TCP"}],
        "from": [{"ipBlock": {"cidr": "10.0.0.0/24"}}, {"ipBlock": {"cidr": "fd00::1/128"}}],
    }
    assert "from" not in ingress(InstallOptions(webhook=True))[1]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (["--api-server", "10.0.0.1"], "add --webhook"),
        (["--webhook", "--api-server", "10.0.0.1/24"], "has host bits set; for example 10.0.0.0/24"),
    ],
)
def test_08_the_address_of_the_api_server_is_checked(said: list[str], words: str):
    ran = CliRunner().invoke(install, ["--image", "i", *said, "--dry-run", "-o", "yaml"])

    assert ran.exit_code == 2
    assert words in ran.output
