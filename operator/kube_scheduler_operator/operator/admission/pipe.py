"""The protocol of the operator and the webhook's process: lines of JSON over two pipes.

The operator sends `StartOrder` once, then `ServeOrder` and `SchedulersOrder` whenever they change.
It closes its end of the pipe when the process must end. The key is sent only here: others can read
arguments and environments.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from ...base.json_text import parse_json
from ...base.objects import Object

LINE: Final = 64 * 1024 * 1024
"""Bytes of the longest line to the process: `status.assignment` of 1,000 SecondarySchedulers."""

REPORT_LINE: Final = 256 * 1024
"""Bytes of the longest line from the process, which any client may have taken over."""

RESULTS: Final = ("assigned", "unchanged", "invalid", "busy", "error")


@dataclass(frozen=True, slots=True)
class StartOrder:
    """The settings that do not change while the process runs."""

    host: str  # to listen on
    port: int  # to listen on; 0: any
    kubeconfig: str | None  # path; None: see `credentials.find`
    excluded: tuple[str, ...]  # namespaces whose Pods are never assigned
    parent: int  # the operator's process


@dataclass(frozen=True, slots=True)
class ServeOrder:
    """The certificate to serve, with its key; PEM."""

    certificate: str
    key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SchedulersOrder:
    """The SecondarySchedulers, reduced by `admission_review.essentials`."""

    items: Sequence[Object]


PipeOrder = StartOrder | ServeOrder | SchedulersOrder
_ORDERS: Final[Mapping[str, type[PipeOrder]]] = {
    kind.__name__: kind for kind in (StartOrder, ServeOrder, SchedulersOrder)
}


def order_line(order: PipeOrder) -> bytes:
    return json.dumps({type(order).__name__: asdict(order)}).encode() + b"\n"


def read_order(line: bytes) -> PipeOrder:
    """Read an order, which only the operator writes."""
    ((name, values),) = json.loads(line).items()
    return _ORDERS[name](**values)


@dataclass(frozen=True, slots=True)
class WebhookReport:
    """The state of the process, and the news since its last report."""

    port: int = 0  # the port in use; 0: it does not listen
    certificate: str = ""  # the certificate in use, PEM
    problem: str = ""  # why it does not serve with the certificate; empty: it does
    results: Mapping[str, int] = field(default_factory=dict)  # number of requests by result
    messages: Sequence[tuple[int, str]] = ()  # (level, text), to be logged

    def line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def read(cls, line: bytes) -> WebhookReport:
        """Read a report.

        Raises:
            ValueError: the line is not a report, or has values of other types.
        """
        values: Any = parse_json(line)
        try:
            report = cls(
                int(values["port"]), str(values["certificate"]), str(values["problem"]),
                {str(name): int(number) for name, number in values["results"].items()},
                [(int(level), str(text)) for level, text in values["messages"]],
            )  # fmt: skip
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"this is not a report: {error}") from error
        if not report.results.keys() <= set(RESULTS) or min(report.results.values(), default=0) < 0:
            raise ValueError("this is not a report: it has unknown results")
        return report
