"""The commands where the provider runs the control plane's scheduler.

The contents are those that the operator makes of the settings.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import MANAGED
from kube_scheduler_operator.base.recognition import PlatformDecision, Recognition
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.cli.rollout import follow_rollout
from kube_scheduler_operator.cli.upgrade import programs
from kube_scheduler_operator.kube.resource import (
    CONFIG_MAPS,
    KUBE_SCHEDULERS,
    NODES,
    PODS,
    SCHEDULER_EXTENDERS,
    SCHEDULER_PROFILES,
    SCHEDULERS,
    SECONDARY_SCHEDULERS,
)
from kube_scheduler_operator.operator.engine.reconcile import reconcile
from kube_scheduler_operator.operator.model.plan import Create, Replace
from kube_scheduler_operator.operator.model.snapshot import Secondaries, Snapshot

from ...builders import kubescheduler, scheduler
from .conftest import Cluster, Done

NAME = "managed-scheduler"
INSTALLED, REFUSED = names.OUTCOME_INSTALLED, names.OUTCOME_REFUSED
PACKED = {"profile": "HighNodeUtilization"}


def _reconciled(
    spec: dict[str, Any],
    found: Any = None,
    namespaces: tuple[str, ...] | None = None,
    **overrides: Any,
) -> tuple[Any, Any]:
    """(SecondaryScheduler, ConfigMap) that the operator makes of these settings."""
    snapshot = Snapshot(
        now=datetime(2026, 1, 1, tzinfo=UTC),
        platform=MANAGED,
        settings=Settings(secondary_namespaces=namespaces),
        decision=PlatformDecision(Recognition(MANAGED, "EKS", "so it is"), remember=True),
        server_version="v1.35.4-eks-1",
        scheduler=scheduler(**spec),
        kubescheduler=kubescheduler(**overrides),
        secondaries=Secondaries({NAME: found} if found else {}, {NAME: {}}, {}, {}),
    )
    for _ in range(4):
        plan = reconcile(snapshot)
        actions = [*plan.actions, *(one for each in plan.write_sets.values() for one in each)]
        for action in actions:
            if action.resource == SECONDARY_SCHEDULERS and isinstance(action, Create | Replace):
                found = {**action.obj, "metadata": {**action.obj["metadata"], "uid": "u"}}
                snapshot = replace(
                    snapshot, secondaries=Secondaries({NAME: found}, {NAME: {}}, {}, {})
                )
            if action.resource == CONFIG_MAPS and NAME in action.obj["metadata"]["name"]:
                return found, action.obj
    raise AssertionError("no content")


class Managed:
    """A managed scheduler that ran each of these settings, oldest first."""

    def __init__(
        self,
        cluster: Cluster,
        *settings: dict[str, Any],
        namespaces: tuple[str, ...] | None = None,
        **outcomes: str,
    ) -> None:
        self.cluster, self.hashes = cluster, []
        history: list[dict[str, Any]] = []
        found = None
        for number, spec in enumerate(settings):
            found, config_map = _reconciled(spec, namespaces=namespaces)
            content_hash = config_map["metadata"]["labels"][names.CONFIG_HASH_LABEL]
            outcome = outcomes.get(f"_{number}", INSTALLED)
            if outcome != REFUSED:
                cluster.put(CONFIG_MAPS, config_map)
            self.hashes.append(content_hash)
            entry = {"hash": content_hash, "outcome": outcome, "time": f"2026-01-0{number + 1}"}
            history.insert(0, entry | ({"message": "no plugin x"} if outcome == REFUSED else {}))
        good = [one["hash"] for one in history if one["outcome"] == INSTALLED]
        self.obj: dict[str, Any] = {
            **(found or {}),
            "status": {
                "configHash": good[0],
                "history": history,
                "observedGeneration": 0,
                "readyReplicas": 2,
                "conditions": [],
            },
        }
        cluster.operator_runs()
        cluster.api.served |= {SECONDARY_SCHEDULERS, SCHEDULER_PROFILES, SCHEDULER_EXTENDERS}
        cluster.put(SECONDARY_SCHEDULERS, self.obj)
        cluster.put(SCHEDULERS, scheduler(**settings[-1]))
        cluster.put(KUBE_SCHEDULERS, kubescheduler())

    async def run(self, *arguments: str) -> Done:
        return await self.cluster.run(*arguments, "--platform", "managed")


async def test_history_has_the_configurations_and_what_changed(cluster: Cluster) -> None:
    managed = Managed(cluster, {}, PACKED)
    done = await managed.run("history")
    first, second = managed.hashes
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == f"SecondaryScheduler {NAME}"
    assert lines[1] == f"{second}  2026-01-02  installed   runs"
    assert lines[2] == f"     compared with {first}:"
    assert any("NodeResourcesFit" in line for line in lines)
    assert lines[-2:] == [f"{first}  2026-01-01  installed", "     the oldest one that is known"]
    as_data = json.loads((await managed.run("history", "-o", "json")).out)
    assert [one["configuration"] for one in as_data] == [second, first]


async def test_history_of_a_refused_configuration_has_the_reason(cluster: Cluster) -> None:
    managed = Managed(cluster, {}, PACKED, _1=REFUSED)
    out = (await managed.run("history")).out
    assert f"{managed.hashes[1]}  2026-01-02  refused\n     no plugin x\n" in out
    assert "its ConfigMap no longer exists" in out


async def test_undo_restores_the_settings_of_the_configuration_before(cluster: Cluster) -> None:
    managed = Managed(cluster, {}, PACKED)
    done = await managed.run("rollout", "undo", "--dry-run")
    assert (done.code, done.err) == (0, "")
    assert f"the settings of configuration {managed.hashes[0]}:" in done.out
    assert "-  profile: HighNodeUtilization" in done.out
    assert "nevertheless" not in done.out, "the result is exactly that configuration"
    done = await managed.run("rollout", "undo", "--yes")
    assert done.code == 0
    assert "profile" not in cluster.api.objects[SCHEDULERS][None, "cluster"]["spec"]


async def test_undo_after_a_refusal_restores_what_runs(cluster: Cluster) -> None:
    managed = Managed(cluster, {}, PACKED, _1=REFUSED)
    done = await managed.run("rollout", "undo", "--dry-run")
    assert f"the settings of configuration {managed.hashes[0]}:" in done.out


async def test_undo_to_a_named_configuration(cluster: Cluster) -> None:
    managed = Managed(cluster, {}, PACKED, {"profile": "NoScoring"})
    done = await managed.run("rollout", "undo", "--dry-run", "--to-revision", managed.hashes[0][:6])
    assert f"the settings of configuration {managed.hashes[0]}:" in done.out
    done = await managed.run("rollout", "undo", "--dry-run", "--to-revision", "7")
    assert (done.code, done.out) == (1, "")
    assert f'configuration "7" does not exist; existing configurations: {managed.hashes[2]}' in (
        done.err
    )


async def test_diff_compares_two_configurations(cluster: Cluster) -> None:
    managed = Managed(cluster, {}, PACKED)
    done = await managed.run("diff")
    assert done.code == 1
    assert "NodeResourcesFit" in done.out
    assert f"configuration-{managed.hashes[0]}" in done.out
    first = managed.hashes[0]
    assert (await managed.run("diff", first, first)).code == 0


async def test_diff_of_a_file_shows_what_the_edit_would_change(
    cluster: Cluster, tmp_path: Path
) -> None:
    managed = Managed(cluster, {})
    file = tmp_path / "scheduler.json"
    file.write_text(json.dumps({**scheduler(), "kind": "Scheduler"}))
    done = await managed.run("diff", "-f", str(file))
    assert (done.code, done.out, done.err) == (0, "", "")
    file.write_text(json.dumps({**scheduler(**PACKED), "kind": "Scheduler"}))
    done = await managed.run("diff", "-f", str(file), "-o", "words")
    assert (done.code, done.err) == (1, "")
    assert f"profile {NAME}: " in done.out


async def test_an_error_in_another_object_does_not_stop_the_comparison(
    cluster: Cluster, tmp_path: Path
) -> None:
    managed = Managed(cluster, {})
    cluster.put(KUBE_SCHEDULERS, kubescheduler(logLevel="Loud"))
    file = tmp_path / "scheduler.json"
    file.write_text(json.dumps({**scheduler(**PACKED), "kind": "Scheduler"}))
    done = await managed.run("diff", "-f", str(file), "-o", "words")
    assert (done.code, done.err) == (1, "")
    assert f"profile {NAME}: " in done.out
    assert "-v" not in done.out, "the accepted log level stays"


async def test_diff_of_a_profile_without_a_scheduler_is_one_of_the_managed_scheduler(
    cluster: Cluster, tmp_path: Path
) -> None:
    managed = Managed(cluster, {})
    file = tmp_path / "profile.json"
    body = {
        "apiVersion": "kube-scheduler-operator.dev/v1alpha1",
        "kind": "SchedulerProfile",
        "metadata": {"name": "packed"},
        "spec": {"base": "HighNodeUtilization"},
    }
    file.write_text(json.dumps(body))
    done = await managed.run("diff", "-f", str(file), "-o", "words")
    assert (done.code, done.out) == (1, "profile packed added\n"), done.err


async def test_plugins_shows_what_the_managed_scheduler_runs(cluster: Cluster) -> None:
    managed = Managed(cluster, {}, PACKED)
    done = await managed.run("plugins")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"configuration {managed.hashes[1]}, ")
    assert f"profile {NAME}" in done.out


def _settle(managed: Managed, progressing: str, degraded: str = "", **status: Any) -> None:
    conditions = [
        {"type": names.PROGRESSING, "status": progressing, "message": "rolling out"},
        {"type": names.DEGRADED, "status": "True" if degraded else "False", "message": degraded},
    ]
    obj = {**managed.obj, "status": {**managed.obj["status"], "conditions": conditions, **status}}
    obj["status"]["observedGeneration"] = obj["metadata"].get("generation", 0)
    managed.cluster.put(SECONDARY_SCHEDULERS, obj)
    found = kubescheduler()
    generation = found["metadata"].get("generation", 0)
    own = {**(found.get("status") or {}), "observedGeneration": generation}
    managed.cluster.put(KUBE_SCHEDULERS, {**found, "status": own})


@pytest.fixture
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow_rollout, "INTERVAL", 0.05)


@pytest.mark.usefixtures("_often")
async def test_watch_ends_when_the_configuration_runs(cluster: Cluster) -> None:
    managed = Managed(cluster, {})
    _settle(managed, "False")
    for command in ("watch", "status"):
        done = await managed.run("rollout", command, "--timeout", "20")
        assert done.code == 0, done
        assert (
            f"done: configuration {managed.hashes[0]} runs; 2 Pods are Ready, 2 are desired"
            in done.out
        )


@pytest.mark.usefixtures("_often")
async def test_watch_fails_with_the_reason(cluster: Cluster) -> None:
    managed = Managed(cluster, {})
    _settle(managed, "False", "kube-scheduler refused it: no plugin x")
    done = await managed.run("rollout", "watch", "--timeout", "20")
    assert done.code == 1
    assert "failed: kube-scheduler refused it: no plugin x" in done.out


@pytest.mark.usefixtures("_often")
async def test_watch_reports_what_it_still_waits_for(cluster: Cluster) -> None:
    managed = Managed(cluster, {})
    _settle(managed, "True")
    done = await managed.run("rollout", "watch", "--timeout", "1")
    assert done.code == 1
    assert f"not finished after 1 s; {NAME}: rolling out" in done.out


@pytest.mark.parametrize("command", [("history",), ("rollout", "undo"), ("diff",), ("plugins",)])
async def test_before_the_operator_has_made_it_the_message_names_the_next_step(
    cluster: Cluster, command: tuple[str, ...]
) -> None:
    cluster.api.served |= {SECONDARY_SCHEDULERS, SCHEDULER_PROFILES, SCHEDULER_EXTENDERS}
    cluster.put(SCHEDULERS, scheduler())
    cluster.put(KUBE_SCHEDULERS, kubescheduler())
    done = await cluster.run(*command, "--platform", "managed")
    assert done.code in (1, 2)
    assert "the operator has not made a SecondaryScheduler yet; see `kubectl scheduler st" in (
        done.err
    )


async def test_dump_cache_names_another_way(cluster: Cluster) -> None:
    done = await cluster.run("dump-cache", "--platform", "managed")
    assert done.code == 1
    assert "kubectl -n kube-scheduler-operator debug POD" in done.err


async def test_a_secondary_scheduler_has_a_history_on_every_platform(cluster: Cluster) -> None:
    managed = Managed(cluster, {}, PACKED)
    done = await cluster.run("history", "--scheduler", NAME)
    assert managed.hashes[0] in done.out
    done = await cluster.run("history", "--scheduler", "other")
    assert 'SecondaryScheduler "other" does not exist' in done.err


@pytest.mark.parametrize("ready", [(), (0,), (1, 0)])
async def test_history_names_what_ready_pods_run_during_a_rollout(
    cluster: Cluster, ready: tuple[int, ...]
) -> None:
    managed = Managed(cluster, {}, PACKED)
    status = managed.obj["status"]
    status["history"][0]["outcome"] = names.OUTCOME_PROGRESSING
    status["running"] = [{"configHash": managed.hashes[n], "readyReplicas": 1} for n in ready]
    cluster.put(SECONDARY_SCHEDULERS, managed.obj)
    done = await cluster.run("history", "--scheduler", NAME, "-o", "json")
    newest, oldest = json.loads(done.out)
    assert newest["outcome"] == names.OUTCOME_PROGRESSING
    assert (oldest["runs"], newest["runs"]) == (0 in ready, 1 in ready)


FORGED = '{"scheduler": {"profile": "NoScoring"}, "kubescheduler": {}}'


async def test_undo_writes_no_settings_that_another_client_recorded(cluster: Cluster) -> None:
    """The hash of a content covers its data, not its annotations."""
    managed = Managed(cluster, {}, PACKED, namespaces=("schedulers",))
    undo = ("rollout", "undo", "--to-revision", managed.hashes[0], "--dry-run")
    assert (await managed.run(*undo)).code == 0
    name = f"{NAME}-config-{managed.hashes[0]}"
    found = cluster.api.objects[CONFIG_MAPS]["schedulers", name]
    notes = {names.ACCEPTED_SETTINGS_ANNOTATION: FORGED}
    cluster.put(CONFIG_MAPS, {**found, "metadata": {**found["metadata"], "annotations": notes}})
    done = await managed.run(*undo)
    assert done.code == 1
    assert (
        f"the settings that are recorded for configuration {managed.hashes[0]} lead to another one"
        in done.err
    )


async def test_an_upgrade_is_checked_for_the_managed_scheduler(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "candidates", lambda _version: ())
    managed = Managed(cluster, PACKED)
    cluster.api.served |= {NODES, PODS}
    gate = "CSIServiceAccountTokenSecrets"
    cluster.put(KUBE_SCHEDULERS, kubescheduler(featureGates={gate: False}))
    done = await managed.run("check", "--upgrade", "1.36", "-o", "json")
    assert done.code == 1, done.err
    (step,) = json.loads(done.out)["steps"]
    (found,) = step["schedulers"]
    assert found["scheduler"] == f'SecondaryScheduler "{NAME}"'
    assert gate in found["errors"][0]
