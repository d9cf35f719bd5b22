"""Extenders of a configuration become SchedulerExtenders with the same behaviour."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kube_scheduler_operator.base.findings import format_path
from kube_scheduler_operator.config.effective.extenders.entry import check_entry
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.validation.configuration import Target
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.migrate.changes import ConversionLog, Severity
from kube_scheduler_operator.config.migrate.operator_objects import (
    ExtenderObjects,
    extender_objects,
)

from ....configurations.seeds import CERTIFICATE, KEY

TARGET = Target(Gates(Version(1, 35)))
URL = {"urlPrefix": "https://gpu.example.com:8443/scheduler/", "enableHTTPS": True}


def converted(*entries: dict[str, Any], scheduler: str | None = None) -> tuple[Any, list[Any]]:
    report = ConversionLog()
    found = extender_objects({"extenders": list(entries)}, scheduler, set(), report)
    return found, list(report.changes())


def spec_of(found: ExtenderObjects) -> dict[str, Any]:
    (obj,) = found.objects
    spec: dict[str, Any] = obj["spec"]
    return spec


def test_every_field_is_kept() -> None:
    entry = {
        **URL,
        "filterVerb": "f", "preemptVerb": "p", "prioritizeVerb": "s", "bindVerb": "b",
        "weight": 7, "httpTimeout": "1m", "nodeCacheCapable": True, "ignorable": True,
        "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}],
        "tlsConfig": {
            "serverName": "gpu", "caData": CERTIFICATE, "caFile": "/ca", "certFile": "/c",
            "keyFile": "/k",
        },
    }  # fmt: skip
    found, changes = converted(entry)
    (obj,) = found.objects
    assert obj["metadata"]["name"] == "gpu"
    assert obj["spec"] == {
        "url": URL["urlPrefix"],
        "verbs": {"filter": "f", "prioritize": "s", "bind": "b", "preempt": "p"},
        "weight": 7, "timeout": "1m", "ignorable": True, "nodeCacheCapable": True,
        "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}],
        "tls": entry["tlsConfig"],
    }  # fmt: skip
    assert [change.severity for change in changes] == [Severity.SAME]


def test_defaults_of_kube_scheduler_are_written_out() -> None:
    found, _ = converted({"urlPrefix": "http://10.0.0.1/x", "filterVerb": "f"})
    assert spec_of(found) == {
        "url": "http://10.0.0.1/x", "verbs": {"filter": "f"}, "timeout": "5s", "ignorable": False,
        "nodeCacheCapable": False,
    }  # fmt: skip


def test_a_secondary_scheduler_calls_its_extenders() -> None:
    found, _ = converted({**URL, "filterVerb": "f"}, scheduler="mine")
    assert spec_of(found)["scheduler"] == "mine"
    assert found.kept == ()


LOST: dict[str, tuple[dict[str, Any], str, str]] = {
    "private key": (
        {"tlsConfig": {"certData": CERTIFICATE, "keyData": KEY, "caFile": "/ca"}},
        "extenders[0].tlsConfig", "set spec.tls.certFile and spec.tls.keyFile",
    ),
    "certificate with the key in a file": (
        {"tlsConfig": {"certData": CERTIFICATE, "keyFile": "/k"}},
        "extenders[0].tlsConfig", "certData removed; a SchedulerExtender contains no private key",
    ),
    "URL without scheme": ({"urlPrefix": "gpu:80"}, "extenders[0].urlPrefix", "needs an http"),
    "URL with a query": (
        {"urlPrefix": "http://gpu/x?a=b"}, "extenders[0].urlPrefix", "without spaces, query",
    ),
    "resources without verbs": (
        {"filterVerb": "", "managedResources": [
            {"name": "example.com/gpu", "ignoredByScheduler": True}]},
        "extenders[0]", "set ignoredResources of NodeResourcesFit",
    ),
    "a longer verb": ({"filterVerb": "f" * 300}, "extenders[0]", "spec.verbs.filter"),
}  # fmt: skip


@pytest.mark.parametrize("name", LOST)
def test_what_an_object_cannot_express_is_reported_with_what_to_do(name: str) -> None:
    fields, path, part = LOST[name]
    _, changes = converted({**URL, "filterVerb": "f", **fields})
    (change,) = [each for each in changes if each.severity is Severity.LOST]
    assert format_path(change.path) == path
    assert part in change.text


@pytest.mark.parametrize(
    "name", ["private key", "URL without scheme", "URL with a query", "resources without verbs"]
)
def test_a_secondary_scheduler_keeps_them_in_its_configuration(name: str) -> None:
    entry = {**URL, "filterVerb": "f", **LOST[name][0]}
    found, changes = converted(entry, scheduler="mine")
    assert (found.objects, found.kept) == ((), (entry,))
    assert all(change.severity is Severity.SAME for change in changes)


DIFFERS: dict[str, tuple[dict[str, Any], str, Any]] = {
    "a long timeout": ({"httpTimeout": "90s"}, "timeout", "1m"),
    "a short timeout": ({"httpTimeout": "1us"}, "timeout", "1ms"),
    "a large weight": ({"prioritizeVerb": "s", "weight": 2_000_000}, "weight", 1_000_000),
    "verification by the image": ({"enableHTTPS": False}, "url", URL["urlPrefix"]),
}


@pytest.mark.parametrize("name", DIFFERS)
def test_limits_of_the_object_are_reported(name: str) -> None:
    fields, key, value = DIFFERS[name]
    found, changes = converted({**URL, "filterVerb": "f", **fields})
    assert spec_of(found)[key] == value
    assert [change.severity for change in changes] == [Severity.DIFFERS, Severity.SAME]


def test_names_are_free_and_from_the_host() -> None:
    hosts = ["http://gpu.x.svc/a", "http://gpu.y.svc/", "http://10.0.0.1", "http://localhost:1",
             "http://[::1]:2", "http://GPU_1/x"]  # fmt: skip
    found, changes = converted(*({"urlPrefix": url, "filterVerb": "f"} for url in hosts))
    names = [obj["metadata"]["name"] for obj in found.objects]
    assert names == ["gpu", "gpu-2", "extender", "extender-2", "extender-3", "gpu-1"]
    assert "called in the order of their names" in changes[-1].text


def random_entry(rng: Random) -> dict[str, Any]:
    """An extender that kube-scheduler accepts."""
    entry: dict[str, Any] = {
        "urlPrefix": rng.choice(("http://a/x", "https://b.example/", "https://10.0.0.1:1/y/z"))
    }
    for verb in ("filter", "prioritize", "preempt", "bind"):
        if rng.random() < 0.6:
            entry[f"{verb}Verb"] = rng.choice(("v", "a/b", "filter"))
    options: dict[str, tuple[Any, ...]] = {
        "weight": (1, 5, 10), "enableHTTPS": (True, False), "ignorable": (True, False),
        "nodeCacheCapable": (True, False),
        "httpTimeout": ("0s", "100ms", "1.5s", "30s", "1m0s", "0.5m"),
        "managedResources": ([], [{"name": "example.com/a"}],
                             [{"name": "example.com/a", "ignoredByScheduler": True}]),
        "tlsConfig": ({}, {"insecure": True}, {"caFile": "/ca"}, {"caData": CERTIFICATE},
                      {"certFile": "/c", "keyFile": "/k"}, {"certFile": "/c"}),
    }  # fmt: skip
    for key, values in options.items():
        if rng.random() < 0.6:
            entry[key] = rng.choice(values)
    if entry.get("prioritizeVerb"):
        entry.setdefault("weight", 1)
    return entry


def behaviour(entry: dict[str, Any]) -> dict[str, Any]:
    """The settings of an extender that have an effect, with kube-scheduler's defaults."""
    tls = {key: value for key, value in (entry.get("tlsConfig") or {}).items() if value}
    https = entry["urlPrefix"].startswith("https://")
    if "keyFile" not in tls:
        tls.pop("certFile", None)
    timeout = {"0s": "5s", "1m0s": "1m", "0.5m": "30s", "1500ms": "1.5s"}
    return {
        "url": entry["urlPrefix"].rstrip("/"),
        "verbs": {key: value for key, value in entry.items() if key.endswith("Verb")},
        "weight": entry.get("weight") if entry.get("prioritizeVerb") else 0,
        "timeout": timeout.get(entry.get("httpTimeout", "0s"), entry.get("httpTimeout")),
        "flags": [bool(entry.get(key)) for key in ("ignorable", "nodeCacheCapable")],
        "resources": entry.get("managedResources") or [],
        "tls": tls if https else {},
    }


def test_the_operator_makes_the_same_extender_of_the_object() -> None:
    rng, tried = Random(1), 0
    for _ in range(500):
        entry = random_entry(rng)
        found, _ = converted(entry)
        if not any(
            entry.get(f"{verb}Verb") for verb in ("filter", "prioritize", "preempt", "bind")
        ):
            assert found.objects == ()
            continue
        (obj,) = found.objects
        checked = check_entry(obj["metadata"]["name"], obj["spec"], TARGET)
        assert checked.problems == (), entry
        assert behaviour(dict(checked.entry)) == behaviour(entry)
        tried += 1
    assert tried > 400
