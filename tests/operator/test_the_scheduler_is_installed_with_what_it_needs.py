"""`shoal install --scheduler`: one leads among neighbours, knows its settings, and is surrounded like the operator."""

from __future__ import annotations

from typing import Any

from click.testing import CliRunner

from shoal.cli.commands.install import command
from shoal.dialects import NAMES
from shoal.install.manifests import render
from shoal.install.options import InstallOptions
from shoal.kube.objects import Obj, at_path, labels_of, name_of

DRY_RUN = ["--image", "registry.example/shoal:1", "--dry-run", "-o", "yaml"]


def objects_of_the_scheduler(**chosen: Any) -> dict[str, Obj]:
    """By kind; of two of a kind that are the scheduler's, what is said is the same."""
    wanted = render(InstallOptions(scheduler=True, **chosen))
    return {obj["kind"]: obj for obj in wanted if name_of(obj).endswith("-scheduler")}


def environment(deployment: Obj) -> dict[str, str]:
    (container,) = at_path(deployment, "spec", "template", "spec", "containers")
    return {each["name"].removeprefix("SHOAL_SCHEDULER_"): each["value"] for each in container["env"]}


def test_schedulers_of_two_installations_take_turns_under_one_lease() -> None:
    made = [objects_of_the_scheduler(name=name, watchNamespace=name) for name in ("shoal-a", "shoal-b")]
    assert [name_of(each["Deployment"]) for each in made] == ["shoal-a-scheduler", "shoal-b-scheduler"]
    assert [environment(each["Deployment"])["NAME"] for each in made] == ["shoal-scheduler"] * 2
    named = [[rule["resourceNames"] for rule in each["Role"]["rules"] if "resourceNames" in rule] for each in made]
    assert named == [[["shoal-scheduler"]]] * 2


def test_it_is_told_how_to_share() -> None:
    made = objects_of_the_scheduler(schedulerSharing="capacity", schedulerTiers=("rack", "zone"), schedulerVolcano="no")
    said = environment(made["Deployment"])
    assert {name: said[name] for name in ("SHARING", "TIERS", "VOLCANO")} == {
        "SHARING": "capacity", "TIERS": "rack,zone", "VOLCANO": "no",
    }  # fmt: skip


def test_what_surrounds_it_chooses_its_pods_and_not_the_operators() -> None:
    made = objects_of_the_scheduler(serviceMonitor=True)
    labels = at_path(made["Deployment"], "spec", "template", "metadata", "labels")
    chosen = {
        "Service": at_path(made["Service"], "spec", "selector"),
        "NetworkPolicy": at_path(made["NetworkPolicy"], "spec", "podSelector", "matchLabels"),
        "PodDisruptionBudget": at_path(made["PodDisruptionBudget"], "spec", "selector", "matchLabels"),
    }
    pods = {"app.kubernetes.io/name": "shoal-scheduler", "app.kubernetes.io/instance": "shoal"}
    assert chosen == dict.fromkeys(chosen, pods)
    assert pods.items() <= labels.items()
    services = at_path(made["ServiceMonitor"], "spec", "selector", "matchLabels")
    assert services.items() <= labels_of(made["Service"]).items()
    assert "ServiceMonitor" not in objects_of_the_scheduler()


def test_what_is_meant_for_it_is_refused_without_it() -> None:
    found = CliRunner().invoke(command, [*DRY_RUN, "--scheduler-tiers", "rack"])
    assert found.exit_code == 2
    assert found.stderr.splitlines()[-1] == "Error: --scheduler-tiers is for Shoal's own scheduler: add --scheduler."


def test_who_places_gangs_is_said_where_it_is_assumed() -> None:
    every = ["--dialects", ",".join(NAMES)]
    found = [
        CliRunner().invoke(command, [*DRY_RUN, *more]) for more in ([], every, [*every, "--gang-scheduler", "kueue"])
    ]
    assert [(each.exit_code, each.stderr) for each in found] == [
        (0, ""),
        (
            0,
            "These objects are for --gang-scheduler shoal: -o does not query the cluster. "
            "Name the cluster's gang scheduler if it has another.\n",
        ),
        (0, ""),
    ]
