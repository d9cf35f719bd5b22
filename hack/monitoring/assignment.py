"""The dashboard of assignments: which new Pods get which schedulerName."""

from __future__ import annotations

from typing import Final

from .panels import INTERVAL, Dashboard, Row, panel, per_second

_P: Final = "kube_scheduler_operator_"
_REVIEWS: Final = f"{_P}assignment_reviews_total"

ASSIGNMENT: Final = Row(
    "Assignment",
    (
        panel(
            "Assignments in effect",
            "1: new Pods that spec.assign of the SecondaryScheduler selects get its schedulerName. "
            "0: they get none; the object's conditions have the reason.",
            "short",
            (f"max without (instance, pod) ({_P}assigned)", "{{scheduler}}"),
        ),
        panel(
            "Reviews by result",
            "New Pods that the API server asked the webhook about; a MutatingAdmissionPolicy needs "
            "no reviews. invalid, busy and error: the Pod kept its schedulerName.",
            "ops",
            (per_second(_REVIEWS, "result"), "{{result}}"),
            quiet="a series begins with the first review of its result",
        ),
        panel(
            "Reviews without a decision",
            "Share of invalid, busy and error. Above 1 %: Pods reach another scheduler than their "
            "namespace's assignment names.",
            "percentunit",
            (
                f'sum(rate({_REVIEWS}{{result=~"invalid|busy|error"}}[{INTERVAL}])) / '
                f"sum(rate({_REVIEWS}[{INTERVAL}]))",
                "without a decision",
            ),
            quiet="such a review may not have occurred",
        ),
        panel(
            "Certificate of the webhook: time until it expires",
            "The operator renews it. Below a day: it does not, and reviews will fail.",
            "s",
            (
                f'min({_P}certificate_expiry_timestamp_seconds{{certificate="webhook"}}) - time()',
                "webhook",
            ),
            quiet="only the webhook has this certificate",
        ),
    ),
)

OUTCOME: Final = Row(
    "What becomes of the Pods",
    (
        panel(
            "Bound Pods by profile",
            "Pods per second that each profile (schedulerName) bound. An assigned profile without "
            "any, while Pods are created: the assignment has no effect.",
            "ops",
            (
                per_second("scheduler_schedule_attempts_total", "profile", 'result="scheduled"'),
                "{{profile}}",
            ),
        ),
        panel(
            "Waiting Pods by schedulerName",
            "Pods without a node that are not gated. An empty name: no known scheduler serves the "
            "schedulerName of the Pods.",
            "short",
            (
                f"sum by (scheduler) (max without (instance, pod) ({_P}waiting_pods"
                '{cause!="gated"}))',
                "{{scheduler}}",
            ),
        ),
    ),
)

BOARD: Final = Dashboard(
    "assignment",
    "kube-scheduler: assignment of Pods",
    "Which new Pods get the schedulerName of a SecondaryScheduler, and what becomes of them.",
    (ASSIGNMENT, OUTCOME),
)
