"""Damaged forms through the check: 600 of them.

`make test-all` has 2,000, `make soak` 200,000. KSO_FORMS=N tries N files, KSO_SEED=S the one that
failed.
"""

from __future__ import annotations

import time
import traceback
from random import Random

import pytest

from kube_scheduler_operator.base.findings import ERROR
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.base.source.encoding import LINE_BREAK, characters
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.lint.checks import CheckOptions
from kube_scheduler_operator.config.lint.places import PLACES, options_for
from kube_scheduler_operator.config.lint.validate import validate

from ....forms.damaged import damaged, undamaged
from ....seeds import chunks, number

SECONDS = 1.0
"""Processor time for one file."""
CHUNKS = chunks(number("KSO_FORMS", 400, soak=200_000), 200)


@pytest.mark.parametrize("seeds", CHUNKS, ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_damaged_forms_are_checked_within_a_second(seeds: range) -> None:
    undamaged()
    problems = []
    for seed in seeds:
        name, data = damaged(seed)
        rng = Random(f"options {seed}")
        options = CheckOptions(Gates(Version(1, rng.randrange(29, 38))), KUBEADM)
        options = options_for(rng.choice(PLACES), options) if rng.random() < 0.3 else options
        found = ("a.yaml",) if rng.random() < 0.3 else ()
        began = time.process_time()
        try:
            report = validate([("a.yaml", data)], options, found=found)
            _ = report.notes
        except Exception as error:  # every one is a defect
            where = traceback.extract_tb(error.__traceback__)[-1]
            problems.append(f"{name}: {error!r} at {where.filename}:{where.lineno}")
            continue
        took = time.process_time() - began
        if took > SECONDS:
            problems.append(f"{name}: {took:.1f} s")
        breaks = data.count(b"\n") + data.count(b"\r")
        lines = max(breaks, len(LINE_BREAK.findall(characters(data).text))) + 2
        for each in report.findings:
            if not each.message or not each.fix or each.position.line > lines * 3:
                problems.append(f"{name}: {each}")
        if report.is_empty and not found and not report.findings:
            problems.append(f"{name}: neither a document nor a finding")
        has_errors = any(each.severity == ERROR for each in report.findings)
        assert report.starts in ((not has_errors,) if report.is_on_record else (None,))
    assert not problems, "\n".join(problems[:20])
