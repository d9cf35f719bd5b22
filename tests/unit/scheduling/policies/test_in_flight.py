"""Expected load of unmeasured Pods: updates equal a recomputation."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kube_scheduler_operator.scheduling.policies.arrays import Column
from kube_scheduler_operator.scheduling.policies.in_flight import InFlight
from kube_scheduler_operator.scheduling.policies.pods import Pod, read_pod

LAG = 300.0
NODE = 0

pods = st.tuples(st.integers(0, 5), st.integers(0, 5), st.sampled_from([0.0, 0.5, 100.0, 250.0]))
"""(Pod, time since its binding in tenths of the lag, expected load)."""


def a_pod(number: int, bound: float, amount: float) -> Pod:
    pod = read_pod({"metadata": {"name": f"p-{number}"}, "spec": {"nodeName": "a"}})
    pod.uid, pod.bound = f"{number}/{amount}", bound
    return pod


def flights(measured: Column) -> InFlight:
    return InFlight(
        1, lambda pod: [float(pod.uid.partition("/")[2])], lambda: 1e9, measured, LAG, fades=True
    )


@given(st.lists(st.one_of(st.tuples(st.just("put"), pods), st.tuples(st.just("gone"), pods),
                          st.tuples(st.just("measured"), pods)), max_size=25))  # fmt: skip
def test_updates_equal_a_recomputation(
    steps: list[tuple[str, tuple[int, int, float]]],
) -> None:
    measured = Column()
    measured[NODE] = 1e6
    kept = flights(measured)
    there: dict[str, Pod] = {}
    for what, (number, tenths, amount) in steps:
        pod = a_pod(number, measured[NODE] + LAG * (tenths - 3) / 10, amount)
        if what == "put":
            there[pod.key] = pod
            kept.pod(NODE, pod, True)
        elif what == "gone":
            there.pop(pod.key, None)
            kept.pod(NODE, pod, False)
        else:
            measured[NODE] += LAG * tenths / 10
            kept.renew(NODE)
        fresh = flights(measured)
        for each in there.values():
            fresh.pod(NODE, each, True)
        assert kept.columns[0][NODE] == fresh.columns[0][NODE]
