"""What the bench of extenders makes of its trials, and that its parts can be started at all."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.extender_calls import Calls, percentile
from benchmarks.extender_faults import FAULTS, Outcome, pods_a_second, table
from benchmarks.extender_profile import by_function, by_phase, by_process
from benchmarks.extender_results import Results, Trial
from benchmarks.extenders import VARIANTS, Variant, chosen
from benchmarks.pace import Pace
from cluster.console import SandboxError
from kube_scheduler_operator.config.effective.extenders.entry import agent_url, check_entry
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.plugins.target_scheduler import Target
from kube_scheduler_operator.config.language.versions import Version

REPOSITORY = Path(__file__).resolve().parents[2]


def results(**rates: list[float]) -> Results:
    made = Results(500)
    for name, values in rates.items():
        for rate in values:
            cpu = {"kube-scheduler": (1.0, 0.5), "extender": (0.4, 0.1)}
            calls = {"filter": (0.2, 0.9)} if name != "none" else {}
            trial = Trial(name.replace("_", "-"), 10, rate, cpu, 0.0, calls, phases={"Filter": 0.5})
            trial.full = name.endswith("_full")
            made.add(trial)
    return made


def test_ratios_are_of_the_same_round() -> None:
    made = results(none=[100, 200, 400], go=[50, 120, 160])
    share = made.ratio("go", "none")
    assert share is not None
    assert (share.median, share.low, share.high) == (0.5, 0.4, 0.6)


def test_a_throttled_scheduler_is_a_missed_target() -> None:
    made = results(none=[100, 100], go=[60, 60], safe=[60, 60])
    assert not list(made.misses())
    made.trials["none"][1].refused = 7.0
    (miss,) = made.misses()
    assert miss.startswith("none: 7 requests were throttled")


def test_a_temporarily_slower_machine_does_not_count_against_a_variant() -> None:
    made = results(go=[100, 100, 100], safe=[50, 60, 100])
    for trial, pace in zip(made.trials["safe"], (2.0, 1.5, 1.0), strict=True):
        trial.pace = pace
    assert made.fair("safe", "go") is None  # the others were not measured
    for trial in made.trials["go"]:
        trial.pace = 1.0
    fair = made.fair("safe", "go")
    assert fair is not None
    assert (fair.median, fair.low, fair.high) == (1.0, 0.9, 1.0)


def test_the_pace_is_what_a_piece_of_work_costs() -> None:
    with Pace() as pace:
        time.sleep(0.3)
    assert 0.0 < pace.cost < 1000.0
    with Pace() as idle:
        pass
    assert math.isnan(idle.cost)


def test_the_table_has_a_line_for_every_variant_and_the_file_all_trials() -> None:
    made = results(none=[100.0], go=[50.0], load_aware=[60.0])
    made.calls["load-aware"] = Calls({"filter": [1.0, 2.0], "prioritize": [0.5]})
    lines = list(made.table())
    for name in ("none", "go", "load-aware"):
        assert any(line.startswith(name) for line in lines)
    assert "60 [60, 60]" in next(line for line in lines if line.startswith("load-aware"))
    assert "1.00, 2.00" in [line for line in lines if line.startswith("load-aware")][1]
    document = json.loads(json.dumps(made.as_json()))
    assert document["variants"]["go"]["trials"][0]["rate"] == 50.0
    assert document["variants"]["load-aware"]["calls"]["filter"]["p99"] == 2.0


def test_missed_targets_are_listed() -> None:
    made = results(none=[100.0], go=[58.0], foo=[60.0], safe=[56.0], pigeon=[50.0], go_full=[2.0])
    made.calls["foo"] = Calls({"filter": [3.5]})
    made.calls["go"] = Calls({"filter": [30.0]})
    assert list(made.misses()) == [
        "foo: filter takes 3.5 ms at p99, not 3",
        "safe: 0.97 of go, not 1.00",
        "pigeon: 0.50 of none, not 0.55",
        "pigeon: 0.86 of go, not 1.00",
    ]


def test_calls_are_measured_without_intervals_of_stolen_processor_time() -> None:
    made, calls = results(go=[50.0], foo=[60.0]), Calls()
    calls.add({"filter": [1.0] * 299})
    calls.add({"filter": [9.0] * 50}, disturbed=True)
    made.calls["foo"] = calls
    assert list(made.misses()) == ["foo: filter takes 9.0 ms at p99, not 3"]  # too few for a p99
    calls.add({"filter": [1.0]})
    assert list(made.misses()) == []
    calls = made.as_json()["variants"]["foo"]["calls"]["filter"]  # type: ignore[index]
    assert (calls["calls"], calls["p99"], calls["max"]) == (350, 9.0, 9.0)
    assert (calls["calls undisturbed"], calls["p99 undisturbed"]) == (300, 1.0)


def test_a_percentile_is_a_value_that_was_measured() -> None:
    times = [float(value) for value in range(1, 201)]
    assert percentile(times, 0.5) == 100.0
    assert percentile(times, 0.99) == 198.0
    assert percentile(times, 1.0) == 200.0
    assert math.isnan(percentile([], 0.5))


def test_profiles_add_up(tmp_path: Path) -> None:
    trials = results(go=[50.0]).trials["go"]
    assert any("extender" in line and "0.40" in line for line in by_process(trials))
    assert any("Filter" in line and "0.500" in line for line in by_phase(trials))
    stacks = tmp_path / "stacks"
    stacks.write_text("a.main;b.read 3\na.main;b.read;c.parse 6\na.main 1\n")
    lines = [line.split() for line in by_function(stacks)][1:]
    assert [(line[-1], line[0], line[2]) for line in lines] == [
        ("a.main", "100.0", "10.0"),
        ("b.read", "90.0", "30.0"),
        ("c.parse", "60.0", "60.0"),
    ]


def test_the_page_about_faults_has_all_of_them_within_the_expected_rates() -> None:
    page = (REPOSITORY / "docs/extenders-faults.md").read_text()
    rows = re.findall(r"^\| ([\w ]+) \| (true|false) \|.*?\| ([\d.]+)/s \|", page, re.MULTILINE)
    rates = {(name, ignorable == "true"): float(rate) for name, ignorable, rate in rows}
    assert list(rates) == [(fault.name, fault.ignorable) for fault in FAULTS]
    for fault in FAULTS:
        law = pods_a_second(fault)
        assert 0.5 * law <= rates[fault.name, fault.ignorable] <= 1.1 * law


def test_the_table_has_the_median_of_repeated_faults() -> None:
    often = [Outcome("hangs", True, 300, 1, 50.0, rate, 238, rate) for rate in (2.0, 2.5, 9.0)]
    assert list(table(often))[2:] == ["| hangs | true | 50/s | 2.5/s | 238 | 2.5 s | 3 |"]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_the_benchmark_calls_the_extender_as_the_operator_configures_it(variant: Variant) -> None:
    if variant.program != "ours" or variant.full:
        assert "http" in variant.entry(1)["urlPrefix"]
        return
    policies = [{"name": name, "weight": weight} for name, weight in variant.policies]
    target = Target(Gates(Version(1, 35)))
    judged = check_entry("bench", {"agent": {"policies": policies}}, target)
    assert not judged.problems
    assert {**judged.entry, "urlPrefix": agent_url("bench", 5401)} == variant.entry(5401)


def test_whole_nodes_are_only_sent_if_asked_for() -> None:
    assert not any(variant.full for variant in chosen([], full=False))
    assert len(chosen([], full=True)) == len(VARIANTS)
    assert [variant.name for variant in chosen(["go", "none"], full=False)] == ["go", "none"]
    with pytest.raises(SandboxError, match="unknown variant fo; use none, go"):
        chosen(["fo"], full=False)


@pytest.mark.parametrize(
    "arguments",
    [("hack/bench", "extender", "--help"), ("-c", "import benchmarks.extender, cluster.recording")],
)
def test_the_bench_starts_without_any_library(arguments: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-S", *arguments],
        cwd=REPOSITORY,
        env={"PYTHONPATH": str(REPOSITORY / "hack")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
