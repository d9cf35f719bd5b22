from __future__ import annotations

import math
import subprocess
import sys

from kube_scheduler_operator.scheduling.policies.arrays import Column


def test_a_column_grows_and_its_array_is_the_same_memory() -> None:
    column = Column()
    column[3] = 2.0
    values = column.values(4)
    assert math.isnan(values[0])
    values[1] = 7.0
    assert column[1] == 7.0
    assert math.isnan(column[1000])
    column[1000] = 1.0
    assert column.values(1001)[1000] == 1.0
    assert column.values(1001)[3] == 2.0


def test_arguments_of_all_policies_are_validated_without_numpy() -> None:
    code = """
import sys
from kube_scheduler_operator.scheduling.policies.policy import catalogue, read_arguments
for name, entry in catalogue().items():
    if not entry.distribution:
        read_arguments(name, {})
loaded = {"numpy", "orjson", "httptools", "uvloop", "kopf", "aiohttp"} & set(sys.modules)
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})
