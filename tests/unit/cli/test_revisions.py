"""`kubectl scheduler history` and `diff`, as a user types them."""

from __future__ import annotations

import json

import yaml

from kube_scheduler_operator.base import names

from .conftest import Cluster, content


async def test_history_is_newest_first_with_changes_and_nodes(cluster: Cluster) -> None:
    cluster.kubescheduler({"a": 2, "b": 1})
    cluster.revision(1, content(), reason="a was created,b was created")
    cluster.revision(2, content(logLevel="Debug"))
    cluster.revision(3, content("NoScoring"), outcome=names.OUTCOME_FAILED, message="it crashed")
    done = await cluster.run("history")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == "3    2026-01-03T00:00:00Z  failed"
    assert lines[1] == "     it crashed"
    assert "     - -v: 4 → 2" in lines
    assert "2    2026-01-02T00:00:00Z  installed   runs on a" in lines
    assert lines[-2:] == [
        "1    2026-01-01T00:00:00Z  installed   runs on b",
        "     the oldest one that is known; it was made because a was created, b was created",
    ]


async def test_history_names_the_edit_that_led_to_a_revision(cluster: Cluster) -> None:
    cluster.kubescheduler({"a": 3})
    cluster.revision(1, content())
    cluster.revision(2, content(logLevel="Debug"))
    cluster.revision(3, content("NoScoring", logLevel="Debug"))
    lines = (await cluster.run("history")).out.splitlines()
    assert [line.strip() for line in lines if "by: " in line] == [
        "by: Scheduler: spec.profile",
        "by: KubeScheduler: spec.logLevel",
    ]


async def test_history_as_documents(cluster: Cluster) -> None:
    cluster.kubescheduler({"a": 2})
    cluster.revision(1, content())
    cluster.revision(2, content(logLevel="Debug"), outcome="")
    shown = json.loads((await cluster.run("history", "-o", "json")).out)
    assert yaml.safe_load((await cluster.run("history", "-o", "yaml")).out) == shown
    assert [entry["revision"] for entry in shown] == [2, 1]
    assert shown[0]["changes"] == ["-v: 2 → 4"]
    assert shown[0]["outcome"] == "in progress"
    assert shown[0]["comparedWith"] == 1
    assert shown[1]["changes"] is None


async def test_restored_content_is_reported_as_the_same(cluster: Cluster) -> None:
    cluster.kubescheduler({"a": 2})
    cluster.revision(1, content())
    cluster.revision(2, content(), reason="asked for again")
    done = await cluster.run("history")
    assert "     same content as revision 1: asked for again" in done.out.splitlines()


async def test_history_names_the_compared_revision_after_pruning(cluster: Cluster) -> None:
    cluster.kubescheduler({"a": 5})
    cluster.revision(2, content())
    cluster.revision(5, content(logLevel="Debug"))
    lines = (await cluster.run("history")).out.splitlines()
    assert lines[1:3] == ["     compared with revision 2:", "     - -v: 2 → 4"]


async def test_history_without_a_revision_refers_to_status(cluster: Cluster) -> None:
    cluster.kubescheduler({})
    assert "kubectl scheduler status" in (await cluster.run("history")).out


async def test_history_without_the_operator_reports_it(cluster: Cluster) -> None:
    done = await cluster.run("history")
    assert done.code == 1
    assert "is the operator installed" in done.err


async def test_a_missing_right_is_named(cluster: Cluster) -> None:
    cluster.kubescheduler({"a": 1})
    output = 'configmaps is forbidden: User "u" cannot list resource "configmaps"'
    cluster.api.fail(403, path="/configmaps", times=None, reason="Forbidden", message=output)
    done = await cluster.run("history")
    assert done.code == 1
    assert done.err == (
        "error: no permission to list configmaps in namespace kube-scheduler-operator; ask a "
        "cluster administrator for a Role in namespace kube-scheduler-operator: "
        'apiGroups: [""], resources: ["configmaps"], verbs: ["list"]\n'
    )


async def test_diff_exits_like_diff(cluster: Cluster) -> None:
    cluster.kubescheduler({"a": 3})
    cluster.revision(1, content())
    cluster.revision(2, content(logLevel="Debug"))
    cluster.revision(3, content(), reason="taken back")
    assert await cluster.run("diff", "1", "3") == type(await cluster.run("diff", "1", "1"))(
        0, "", ""
    )
    done = await cluster.run("diff", "1", "2")
    assert done.code == 1
    assert "+-v=4" in done.out.splitlines()
    missing = await cluster.run("diff", "1", "9")
    assert (missing.code, missing.out) == (2, "")
    assert "revision 9 does not exist" in missing.err
    assert "1, 2, 3" in missing.err


async def test_diff_compares_what_the_nodes_run_with_the_newest(cluster: Cluster) -> None:
    for number, level in enumerate(("Normal", "Debug", "Trace"), start=1):
        cluster.revision(
            number, content(logLevel=level), outcome="" if number == 3 else "installed"
        )
    cluster.kubescheduler({"a": 1, "b": 1})
    assert "--- revision-1/flags" in (await cluster.run("diff")).out.splitlines()
    cluster.kubescheduler({"a": 3, "b": 3})
    assert "--- revision-2/flags" in (await cluster.run("diff")).out.splitlines()
    assert "+++ revision-3/flags" in (await cluster.run("diff", "1")).out.splitlines()


async def test_diff_of_the_only_revision_is_an_error(cluster: Cluster) -> None:
    cluster.kubescheduler({"a": 1})
    assert (await cluster.run("diff")).code == 2
    cluster.revision(1, content())
    done = await cluster.run("diff")
    assert done.code == 2
    assert "before 1" in done.err


async def test_a_change_without_a_recorded_edit_is_not_ascribed_to_the_operator_alone(
    cluster: Cluster,
) -> None:
    cluster.kubescheduler({"a": 2})
    cluster.revision(1, content())
    cluster.revision(2, content(image="registry.k8s.io/kube-scheduler:v1.34.2"))
    by = next(line for line in (await cluster.run("history")).out.splitlines() if "by: " in line)
    assert "no recorded edit" in by
    assert "authorities" in by
