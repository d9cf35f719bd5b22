"""Failing configurations are rolled back, and only their own failures are attributed to them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from kube_scheduler_operator.base import names
from kube_scheduler_operator.kube.resource import CONFIG_MAPS, DEPLOYMENTS, SECONDARY_SCHEDULERS

from .world import NAME, NAMESPACE, World, crashing, hanging, refusing

BAD = "unknown field in configuration"


def test_a_refused_configuration_is_rolled_back_and_not_retried(world: World) -> None:
    good = world.installed()
    world.put(config={"parallelism": 4})
    world.run()
    bad = world.running()
    words = 'E0101 00:00:00.000000       1 run.go:72] "command failed" err="strict decoding error"'
    world.pod(bad, **refusing(words))
    world.run()
    assert world.running() == good, "the Deployment is rolled back"
    assert world.outcomes() == {good: names.OUTCOME_INSTALLED, bad: names.OUTCOME_REFUSED}
    status, reason, message = world.condition(names.DEGRADED)
    assert (status, reason) == ("True", "ConfigurationRefused")
    assert message == (
        f"configuration {bad} is not used, because kube-scheduler refused it; {good} stays in use: "
        "strict decoding error"
    )
    assert world.condition(names.AVAILABLE)[0] == "True"
    assert world.status()["configHash"] == good
    world.roll_out()
    world.run()
    world.run()
    assert world.writes == [], "no retry"
    assert bad not in world.config_map_hashes()
    world.put(config={"parallelism": 5})
    world.run()
    assert world.running() not in (good, bad), "other content is tried at once"
    assert world.condition(names.DEGRADED)[0] == "False"


def test_a_warning_about_a_refused_configuration_does_not_count_as_in_use(world: World) -> None:
    world.installed()
    world.put(image="registry.k8s.io/kube-scheduler:v1.99.0")
    world.run()
    bad = world.running()
    status, _, warning = world.condition(names.WARNINGS)
    assert (status, "refused" in warning) == ("True", False)
    world.pod(bad, **refusing(BAD))
    world.run()
    assert world.running() != bad
    _, _, warning = world.condition(names.WARNINGS)
    assert f"kube-scheduler refused configuration {bad}, which has this" in warning


def test_a_force_redeployment_reason_retries_a_refused_configuration(world: World) -> None:
    world.installed()
    world.put(config={"parallelism": 4})
    world.run()
    bad = world.running()
    world.pod(bad, **refusing(BAD))
    world.run()
    world.put(config={"parallelism": 4}, forceRedeploymentReason="the image was fixed")
    world.run()
    assert world.condition(names.PROGRESSING)[0] == "True"
    assert world.get(CONFIG_MAPS, f"{NAME}-config-{world.running()}")["data"][names.CONFIG_KEY]


def test_reverting_the_edit_returns_to_the_good_configuration(world: World) -> None:
    good = world.installed()
    world.put(config={"parallelism": 4})
    world.run()
    world.pod(world.running(), **refusing(BAD))
    world.run()
    world.roll_out()
    world.put()
    world.run()
    assert world.running() == good
    assert world.condition(names.DEGRADED)[0] == "False"


def test_a_killed_preflight_is_not_a_refusal(world: World) -> None:
    good = world.installed()
    world.put(config={"parallelism": 4})
    world.run()
    new = world.running()
    world.pod(new, **refusing("", code=137))
    world.run()
    assert world.running() == new != good


def test_a_refused_first_configuration_stays_without_an_alternative(world: World) -> None:
    world.put(image="example.com/mine:v1")
    world.run()
    bad = world.running()
    world.pod(bad, **refusing("panic: no such plugin"))
    world.run()
    assert world.running() == bad
    status, _, message = world.condition(names.DEGRADED)
    assert status == "True"
    assert "there is no earlier configuration to run: panic: no such plugin" in message
    world.run()
    assert world.writes == []
    # The cause is gone: a restart by the kubelet succeeded.
    world.roll_out()
    world.run()
    assert world.outcomes() == {bad: names.OUTCOME_INSTALLED}
    assert world.condition(names.DEGRADED)[0] == "False"


def test_a_crashing_configuration_is_rolled_back_with_its_termination_message(world: World) -> None:
    good = world.installed()
    world.put(extraArguments={"profiling": "true"})
    world.run()
    bad = world.running()
    words = 'F0101 00:00:00.000000       1 x.go:1] "no" err="out of luck"'
    for restarts in (1, 2):
        world.pod(bad, **crashing(words, restarts, world.cluster.now))
        world.run()
        assert world.running() == bad, "the first restarts are tolerated"
    world.pod(bad, **crashing(words, 3, world.cluster.now))
    world.run()
    assert world.running() == good
    _, reason, message = world.condition(names.DEGRADED)
    assert reason == "ConfigurationFailed"
    assert message.endswith(f'pod {NAME}-{bad}-0 crashes: container "kube-scheduler": out of luck')


def test_a_crashing_sidecar_rolls_back_the_content(world: World) -> None:
    good = world.installed()
    world.put(sidecars=[{"name": "extender", "image": "extender:1"}])
    world.run()
    world.pod(world.running(), **crashing("no port", 3, world.cluster.now, "extender"))
    world.run()
    assert world.running() == good
    assert 'container "extender": no port' in world.condition(names.DEGRADED)[2]


def test_a_scheduler_that_is_not_ready_within_a_minute_is_rolled_back(world: World) -> None:
    good = world.installed()
    world.put(config={"parallelism": 4})
    world.run()
    bad = world.running()
    world.pod(bad, **hanging(world.cluster.now))
    world.run()
    wait = world.wait
    assert wait is not None
    assert wait <= 60
    world.cluster.now += timedelta(seconds=59)
    world.leases_seen[NAMESPACE, NAME] = world.cluster.now
    world.run()
    assert world.running() == bad
    world.cluster.now += timedelta(seconds=1)
    world.run()
    assert world.running() == good
    assert "was not Ready within 60 s" in world.condition(names.DEGRADED)[2]


def test_crashes_soon_after_the_rollout_roll_it_back(world: World) -> None:
    good = world.installed()
    world.put(config={"parallelism": 4})
    world.run()
    world.roll_out()
    world.run()
    late = world.running()
    assert world.outcomes()[late] == names.OUTCOME_INSTALLED
    world.cluster.now += timedelta(minutes=5)
    crash_all(world, late)
    world.run()
    assert world.running() == good
    assert world.outcomes()[late] == names.OUTCOME_FAILED


def test_later_crashes_are_not_attributed_to_the_configuration(world: World) -> None:
    world.installed()
    world.put(config={"parallelism": 4})
    world.run()
    world.roll_out()
    world.run()
    late = world.running()
    world.cluster.now += timedelta(minutes=11)
    crash_all(world, late)
    world.run()
    assert world.running() == late
    status, reason, message = world.condition(names.DEGRADED)
    assert (status, reason) == ("True", "PodsFailing")
    assert "gone" in message


def crash_all(world: World, hash_: str) -> None:
    """Let all pods of a content crash, also in the status of the Deployment."""
    for index in range(2):
        world.pod(hash_, index, **crashing("gone", 3, world.cluster.now))
    status = {**world.get(DEPLOYMENTS)["status"], "availableReplicas": 0}
    world.edit(DEPLOYMENTS, status=status)


def test_a_failure_of_the_good_configuration_too_is_not_attributed(world: World) -> None:
    good = world.installed()
    world.put(config={"parallelism": 4})
    world.run()
    new = world.running()
    for index in range(2):
        world.pod(good, index, **crashing("no API server", 5, world.cluster.now))
    world.pod(new, **crashing("no API server", 5, world.cluster.now))
    world.run()
    assert world.running() == new


def test_crashes_due_to_an_api_outage_are_not_attributed(world: World) -> None:
    world.installed()
    world.put(config={"parallelism": 4})
    world.run()
    new = world.running()
    world.answered_since = world.recovered_at = world.cluster.now
    world.pod(new, **crashing("no API server", 3, world.cluster.now + timedelta(seconds=5)))
    world.run()
    assert world.running() == new
    world.pod(new, **crashing("mine", 4, world.cluster.now + timedelta(seconds=30)))
    world.run()
    assert world.running() != new


def test_a_waiting_pod_is_reported_and_not_rolled_back(world: World) -> None:
    """A missing image may appear later, and the running pods keep working."""
    world.installed()
    world.put(image="example.com/mine:v1")
    world.run()
    new = world.running()
    waiting: dict[str, Any] = {
        "name": "preflight",
        "state": {"waiting": {"reason": "ErrImagePull"}},
    }
    status: dict[str, Any] = {"initContainerStatuses": [waiting]}
    world.pod(new, **status)
    world.run()
    assert world.condition(names.DEGRADED)[0] == "False", "not yet"
    world.cluster.now += timedelta(seconds=61)
    world.leases_seen[NAMESPACE, NAME] = world.cluster.now
    world.run()
    assert world.running() == new
    status_, reason, message = world.condition(names.DEGRADED)
    assert (status_, reason) == ("True", "PodsFailing")
    assert "cannot be pulled; check its name and imagePullSecrets" in message
    waiting["state"]["waiting"]["reason"] = "ImagePullBackOff"
    obj = world.get(SECONDARY_SCHEDULERS)
    world.run()
    assert world.get(SECONDARY_SCHEDULERS) == obj, "the reason alternates, the status does not"
