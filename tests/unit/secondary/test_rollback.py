"""What does not run is taken back, and nobody is blamed for what is not their fault."""

from __future__ import annotations

from datetime import timedelta

from kube_scheduler_operator.base import names
from kube_scheduler_operator.kube.resource import CONFIG_MAPS, DEPLOYMENTS, SECONDARY_SCHEDULERS

from .world import NAME, NAMESPACE, World, crashing, hanging, refusing

BAD = "unknown field in configuration"


def test_what_kube_scheduler_refuses_is_taken_back_and_not_tried_again(world: World) -> None:
    good = world.installed()
    world.put(config={"parallelism": 4})
    world.run()
    bad = world.running()
    words = 'E0101 00:00:00.000000       1 run.go:72] "command failed" err="strict decoding error"'
    world.pod(bad, **refusing(words))
    world.run()
    assert world.running() == good, "the Deployment goes back"
    assert world.outcomes() == {good: names.OUTCOME_INSTALLED, bad: names.OUTCOME_REFUSED}
    status, reason, message = world.condition(names.DEGRADED)
    assert (status, reason) == ("True", "ConfigurationRefused")
    assert message == (
        f"configuration {bad} is not used, because kube-scheduler refused it; {good} runs on: "
        "strict decoding error"
    )
    assert world.condition(names.AVAILABLE)[0] == "True"
    assert world.status()["configHash"] == good
    world.roll_out()
    world.run()
    world.run()
    assert world.writes == [], "it is not tried again"
    assert bad not in world.config_map_hashes()
    world.put(config={"parallelism": 5})
    world.run()
    assert world.running() not in (good, bad), "something else is tried at once"
    assert world.condition(names.DEGRADED)[0] == "False"


def test_the_same_can_be_tried_once_more_with_a_reason(world: World) -> None:
    world.installed()
    world.put(config={"parallelism": 4})
    world.run()
    bad = world.running()
    world.pod(bad, **refusing(BAD))
    world.run()
    world.put(config={"parallelism": 4}, forceRedeploymentReason="the image has been mended")
    world.run()
    assert world.condition(names.PROGRESSING)[0] == "True"
    assert world.get(CONFIG_MAPS, f"{NAME}-config-{world.running()}")["data"][names.CONFIG_KEY]


def test_who_takes_the_edit_back_has_what_ran(world: World) -> None:
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


def test_a_program_that_was_killed_has_not_refused_anything(world: World) -> None:
    good = world.installed()
    world.put(config={"parallelism": 4})
    world.run()
    new = world.running()
    world.pod(new, **refusing("", code=137))
    world.run()
    assert world.running() == new != good


def test_the_first_one_that_is_refused_stays_because_there_is_no_other(world: World) -> None:
    world.put(image="example.com/mine:v1")
    world.run()
    bad = world.running()
    world.pod(bad, **refusing("panic: no such plugin"))
    world.run()
    assert world.running() == bad
    status, _, message = world.condition(names.DEGRADED)
    assert status == "True"
    assert "nothing else was there to run: panic: no such plugin" in message
    world.run()
    assert world.writes == []
    # Whatever it was, it is over: the kubelet has tried again.
    world.roll_out()
    world.run()
    assert world.outcomes() == {bad: names.OUTCOME_INSTALLED}
    assert world.condition(names.DEGRADED)[0] == "False"


def test_what_crashes_is_taken_back_with_its_last_words(world: World) -> None:
    good = world.installed()
    world.put(extraArguments={"profiling": "true"})
    world.run()
    bad = world.running()
    words = 'F0101 00:00:00.000000       1 x.go:1] "no" err="out of luck"'
    for restarts in (1, 2):
        world.pod(bad, **crashing(words, restarts, world.now))
        world.run()
        assert world.running() == bad, "it has more than one chance"
    world.pod(bad, **crashing(words, 3, world.now))
    world.run()
    assert world.running() == good
    _, reason, message = world.condition(names.DEGRADED)
    assert reason == "ConfigurationFailed"
    assert message.endswith(f'pod {NAME}-{bad}-0 crashes: container "kube-scheduler": out of luck')


def test_a_sidecar_that_crashes_is_part_of_the_content(world: World) -> None:
    good = world.installed()
    world.put(sidecars=[{"name": "extender", "image": "extender:1"}])
    world.run()
    world.pod(world.running(), **crashing("no port", 3, world.now, "extender"))
    world.run()
    assert world.running() == good
    assert 'container "extender": no port' in world.condition(names.DEGRADED)[2]


def test_one_that_runs_and_does_not_become_ready_has_a_minute(world: World) -> None:
    good = world.installed()
    world.put(config={"parallelism": 4})
    world.run()
    bad = world.running()
    world.pod(bad, **hanging(world.now))
    world.run()
    wait = world.wait
    assert wait is not None
    assert wait <= 60
    world.now += timedelta(seconds=59)
    world.leases_seen[NAMESPACE, NAME] = world.now
    world.run()
    assert world.running() == bad
    world.now += timedelta(seconds=1)
    world.run()
    assert world.running() == good
    assert "was not Ready within 60 s" in world.condition(names.DEGRADED)[2]


def test_one_that_crashes_soon_after_it_was_installed_is_taken_back(world: World) -> None:
    good = world.installed()
    world.put(config={"parallelism": 4})
    world.run()
    world.roll_out()
    world.run()
    late = world.running()
    assert world.outcomes()[late] == names.OUTCOME_INSTALLED
    world.now += timedelta(minutes=5)
    unwell(world, late)
    world.run()
    assert world.running() == good
    assert world.outcomes()[late] == names.OUTCOME_FAILED


def test_later_crashes_are_blamed_on_the_surroundings(world: World) -> None:
    world.installed()
    world.put(config={"parallelism": 4})
    world.run()
    world.roll_out()
    world.run()
    late = world.running()
    world.now += timedelta(minutes=11)
    unwell(world, late)
    world.run()
    assert world.running() == late
    status, reason, message = world.condition(names.DEGRADED)
    assert (status, reason) == ("True", "PodsFailing")
    assert "gone" in message


def unwell(world: World, hash_: str) -> None:
    """All pods of a content crash, and the Deployment says so."""
    for index in range(2):
        world.pod(hash_, index, **crashing("gone", 3, world.now))
    status = {**world.get(DEPLOYMENTS)["status"], "availableReplicas": 0}
    world.edit(DEPLOYMENTS, status=status)


def test_while_the_good_ones_fail_as_well_nobody_is_blamed(world: World) -> None:
    good = world.installed()
    world.put(config={"parallelism": 4})
    world.run()
    new = world.running()
    for index in range(2):
        world.pod(good, index, **crashing("no API server", 5, world.now))
    world.pod(new, **crashing("no API server", 5, world.now))
    world.run()
    assert world.running() == new


def test_after_an_outage_of_the_api_server_nobody_is_blamed(world: World) -> None:
    world.installed()
    world.put(config={"parallelism": 4})
    world.run()
    new = world.running()
    world.answered_since = world.recovered_at = world.now
    world.pod(new, **crashing("no API server", 3, world.now + timedelta(seconds=5)))
    world.run()
    assert world.running() == new
    world.pod(new, **crashing("mine", 4, world.now + timedelta(seconds=30)))
    world.run()
    assert world.running() != new


def test_what_waits_is_said_and_does_not_go_back(world: World) -> None:
    """A missing image may come; and what runs runs on."""
    world.installed()
    world.put(image="example.com/mine:v1")
    world.run()
    new = world.running()
    waiting = {"name": "preflight", "state": {"waiting": {"reason": "ErrImagePull"}}}
    status = {"initContainerStatuses": [waiting]}
    world.pod(new, **status)
    world.run()
    assert world.condition(names.DEGRADED)[0] == "False", "not yet"
    world.now += timedelta(seconds=61)
    world.leases_seen[NAMESPACE, NAME] = world.now
    world.run()
    assert world.running() == new
    status_, reason, message = world.condition(names.DEGRADED)
    assert (status_, reason) == ("True", "PodsFailing")
    assert "cannot be pulled; check its name and imagePullSecrets" in message
    waiting["state"]["waiting"]["reason"] = "ImagePullBackOff"
    obj = world.get(SECONDARY_SCHEDULERS)
    world.run()
    assert world.get(SECONDARY_SCHEDULERS) == obj, "the kubelet alternates; the status does not"
