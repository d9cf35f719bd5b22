"""A reference that names no pod is answered with the form to write."""

from __future__ import annotations

import argparse

import pytest

from kube_scheduler_operator.cli.console.errors import UsageError
from kube_scheduler_operator.cli.console.pod_reference import pod_reference


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("podgroup/ml/train", "names a namespace: write podgroup/train -n ml"),
        ("deploy/shop/web", "names a namespace: write deploy/web -n shop"),
        ("workload/train", "a group of Pods is named podgroup/NAME"),
        ("cronjob/shop/web", "is not POD, NAMESPACE/POD or KIND/NAME; KIND is one of pod"),
        ("a/b/c/d", "is not POD, NAMESPACE/POD or KIND/NAME"),
    ],
)
def test_a_reference_of_another_form_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        pod_reference(argparse.Namespace(pod=text, namespace=None))


def test_a_namespace_may_be_part_of_a_pods_name() -> None:
    found = pod_reference(argparse.Namespace(pod="shop/web", namespace="other"))
    assert (found.namespace, found.name, found.workload) == ("shop", "web", None)
