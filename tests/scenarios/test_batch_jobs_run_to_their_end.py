"""Jobs of batch/v1 in a cluster of our own: as many successes as are wished for, and what stands in their way."""

from __future__ import annotations

from kit.native_world import JobWorld, SimulatedJobs, job, job_scenario
from kit.pod_behavior import exits, runs
from shoal.cluster.client import DeletionPropagation
from shoal.kube.objects import name_of, uid_of

COMPLETE = ["SuccessCriteriaMet: CompletionsReached", "Complete: CompletionsReached"]


def failed(why: str) -> list[str]:
    return [f"FailureTarget: {why}", f"Failed: {why}"]


@job_scenario(kubernetes=True)
async def test_successes_are_counted_until_there_are_enough(world: JobWorld) -> None:
    await world.submit(job("a", parallelism=2, completions=3))
    assert await world.ended("a") == COMPLETE
    assert (world.counts("a"), len(world.pods_of("a"))) == ({"succeeded": 3}, 3)


@job_scenario(kubernetes=True)
async def test_each_index_succeeds_once(world: JobWorld) -> None:
    await world.submit(job("a", completionMode="Indexed", completions=3, parallelism=3))
    assert await world.ended("a") == COMPLETE
    assert world.counts("a") == {"succeeded": 3, "completedIndexes": "0-2"}
    hosts = {pod["spec"]["hostname"] for pod in world.pods_of("a")}
    assert hosts == {"a-0", "a-1", "a-2"}


@job_scenario(real=False)
async def test_a_failed_index_is_tried_again(world: SimulatedJobs) -> None:
    spec = {"completionMode": "Indexed", "completions": 2, "parallelism": 2, "backoffLimitPerIndex": 1}
    await world.submit(job("a", first={1: exits(1)}, **spec))
    assert await world.ended("a") == COMPLETE
    assert world.counts("a") == {"succeeded": 2, "failed": 1, "completedIndexes": "0-1"}
    await world.submit(job("b", of={1: exits(1)}, **spec))
    assert await world.ended("b") == failed("FailedIndexes")
    assert world.counts("b") == {"succeeded": 1, "failed": 2, "completedIndexes": "0", "failedIndexes": "1"}


@job_scenario(real=False)
async def test_failures_beyond_the_limit_fail_the_job(world: SimulatedJobs) -> None:
    await world.submit(job("a", exits(1), backoffLimit=2))
    assert await world.ended("a") == failed("BackoffLimitExceeded")
    assert world.counts("a") == {"failed": 3}
    await world.submit(job("b", of={0: exits(1), 1: runs()}, parallelism=2, completions=2, backoffLimit=0))
    assert await world.ended("b") == failed("BackoffLimitExceeded")
    await world.until(lambda: world.counts("b") == {"failed": 2})


@job_scenario(kubernetes=True)
async def test_an_exit_code_may_fail_the_job_or_cost_nothing(world: JobWorld) -> None:
    def policy(action: str) -> dict[str, object]:
        rule = {"action": action, "onExitCodes": {"containerName": "main", "operator": "NotIn", "values": [1, 3]}}
        return {"podFailurePolicy": {"rules": [rule]}, "backoffLimit": 0}

    await world.submit(job("fails", exits(2), **policy("FailJob")))
    assert await world.ended("fails") == failed("PodFailurePolicy")
    assert world.counts("fails") == {"failed": 1}
    await world.submit(job("counts", exits(3), **policy("FailJob")))
    assert await world.ended("counts") == failed("BackoffLimitExceeded")
    assert world.counts("counts") == {"failed": 1}


@job_scenario(kubernetes=True)
async def test_a_suspended_job_has_no_pods_and_goes_on_later(world: JobWorld) -> None:
    await world.submit(job("a", of={0: exits(0), 1: runs()}, completionMode="Indexed", completions=2, parallelism=2))
    await world.until(lambda: world.counts("a").get("succeeded") == 1)
    await world.ready("a", 1)
    await world.change("a", suspend=True)
    await world.until(lambda: not world.living("a") and world.claims("a") == ["Suspended: JobSuspended"])
    assert "startTime" not in world.status("a")
    await world.change("a", suspend=False)
    left = {"active": 1, "ready": 1, "succeeded": 1, "completedIndexes": "0"}
    await world.until(lambda: world.counts("a") == left)


@job_scenario(real=False)
async def test_time_is_up_and_the_job_fails_and_goes(world: SimulatedJobs) -> None:
    await world.submit(job("a", runs(), activeDeadlineSeconds=20, ttlSecondsAfterFinished=30, parallelism=2))
    assert await world.ended("a") == failed("DeadlineExceeded")
    await world.until(lambda: "a" not in world.frameworks and not world.pods)


@job_scenario()
async def test_one_success_is_enough_and_the_others_run_on(world: JobWorld) -> None:
    await world.submit(job("a", of={0: exits(0), 1: exits(0, after=12)}, parallelism=2))
    assert await world.ended("a") == COMPLETE
    assert (world.counts("a"), len(world.pods_of("a"))) == ({"succeeded": 2}, 2)


@job_scenario(kubernetes=True)
async def test_a_job_that_is_deleted_leaves_nothing(world: JobWorld) -> None:
    await world.submit(job("a", runs(), parallelism=2, completions=2))
    await world.ready("a", 2)
    await world.delete("a", DeletionPropagation.BACKGROUND)
    await world.until(lambda: "a" not in world.frameworks and not world.pods)
    await world.submit(job("b", runs()))
    await world.ready("b", 1)
    await world.delete("b")
    await world.until(lambda: "b" not in world.frameworks and not world.pods)


@job_scenario(real=False)
async def test_a_pod_that_others_delete_counts_and_is_replaced(world: SimulatedJobs) -> None:
    await world.submit(job("a", runs(), backoffLimit=3))
    await world.ready("a", 1)
    (pod,) = world.living("a")
    await world.delete_pod(name_of(pod))
    await world.until(lambda: bool(world.living("a")) and uid_of(world.living("a")[0]) != uid_of(pod))
    await world.until(lambda: world.counts("a") == {"active": 1, "ready": 1, "failed": 1})


BY_POLICY = ["SuccessCriteriaMet: SuccessPolicy", "Complete: SuccessPolicy"]


@job_scenario(kubernetes=True)
async def test_some_indexes_are_enough_where_the_policy_says_so(world: JobWorld) -> None:
    def spec(*rules: dict[str, object]) -> dict[str, object]:
        return {
            "completionMode": "Indexed",
            "completions": 4,
            "parallelism": 4,
            "successPolicy": {"rules": list(rules)},
        }

    others = {1: runs(), 2: runs()}
    await world.submit(job("leader", of=others | {3: runs()}, **spec({"succeededIndexes": "0"})))
    assert (await world.ended("leader"), world.counts("leader")["completedIndexes"]) == (BY_POLICY, "0")
    two = {"succeededIndexes": "1-3", "succeededCount": 2}
    await world.submit(job("two", of={1: runs()}, **spec({"succeededIndexes": "1"}, two)))
    assert await world.ended("two") == BY_POLICY
    matched = [each["message"] for each in world.status("two")["conditions"] if each["type"] == "Complete"]
    assert matched == ["Matched rules at index 1"]
    await world.submit(job("none", of=others, **spec({"succeededIndexes": "1-2", "succeededCount": 1})))
    await world.until(lambda: world.counts("none").get("completedIndexes") == "0,3")
    assert world.claims("none") == []
