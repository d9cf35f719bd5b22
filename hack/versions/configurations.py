"""The configurations of the tests, read by the rules on record and by a release.

What differs here and not in the tables is a rule that changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.configurations.compare import only_when_it_elects
from tests.configurations.generate import configurations

from cluster.configuration_reader import ConfigurationReader
from kube_scheduler_operator.base.findings import format_path
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.validation.configuration import Target, validate_config
from kube_scheduler_operator.config.language.versions import Version

_SHOWN = 3
"""Configurations of one class that are reported; the others probably have the same reason."""


def configuration_differences(reader: ConfigurationReader, minor: int) -> Iterator[str]:
    """Configurations of 1.`minor` that the release accepts and the rules reject, or vice versa.

    Those with feature gates are left to the tests, because a reader has the default ones.
    """
    target = Target(Gates(Version(1, minor)))
    found: Counter[str] = Counter()
    for made in configurations(minor):
        if made.gates:
            continue
        _, error = reader.read(made.text.encode())
        problems = validate_config(made.config, target)
        is_accepted = not problems or only_when_it_elects(problems)
        if is_accepted == (not error):
            continue
        found[made.group] += 1
        if found[made.group] <= _SHOWN:
            ours = "; ".join(f"{format_path(p.path)}: {p.sentence}" for p in problems) or "valid"
            theirs = error.strip().splitlines()[-1] if error else "valid"
            yield f'configuration "{made.group}: {made.name}": {theirs}, on record: {ours}'
    for group, count in found.items():
        if count > _SHOWN:
            yield f'configurations "{group}": {count - _SHOWN} more differ'
