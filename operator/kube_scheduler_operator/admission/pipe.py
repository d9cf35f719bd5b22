"""What the operator and the webhook's process report to each other: lines of JSON over two pipes.

The operator sends `StartOrder` once, then `ServeOrder` and `SchedulersOrder` whenever they change;
its end of the pipe is closed when the process has to end. The key travels here and nowhere else:
others can read arguments and environments.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from ..base.json_text import parse_json
from ..base.objects import Object

LINE: Final = 64 * 1024 * 1024
"""Bytes of the longest line to the process: `status.assignment` of 1,000 SecondarySchedulers."""

REPORT_LINE: Final = 256 * 1024
"""Bytes of the longest line from the process, which any client may have made its own."""

RESULTS: Final = ("assigned", "unchanged", "invalid", "busy", "error")
"""The results of requests."""


@dataclass(frozen=True, slots=True)
class StartOrder:
    """What does not change while the process runs."""

    host: str  # address to listen on
    port: int  # port to listen on; 0: any
    kubeconfig: str | None  # path; None: as `find` does
    excluded: tuple[str, ...]  # namespaces whose Pods are never assigned
    parent: int  # the operator's process


@dataclass(frozen=True, slots=True)
class ServeOrder:
    """The certificate to serve, with its key; PEM."""

    certificate: str
    key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SchedulersOrder:
    """What decides of the SecondarySchedulers, see `admission_review.essentials`."""

    items: Sequence[Object]


PipeOrder = StartOrder | ServeOrder | SchedulersOrder
_ORDERS: Final[Mapping[str, type[PipeOrder]]] = {
    kind.__name__: kind for kind in (StartOrder, ServeOrder, SchedulersOrder)
}


def order_line(order: PipeOrder) -> bytes:
    """The line of an order."""
    return json.dumps({type(order).__name__: asdict(order)}).encode() + b"\n"


def read_order(line: bytes) -> PipeOrder:
    """The order of a line; only the operator writes them."""
    ((name, values),) = json.loads(line).items()
    return _ORDERS[name](**values)


@dataclass(frozen=True, slots=True)
class WebhookReport:
    """What the process reports."""

    port: int = 0  # the port in use; 0: it does not listen
    certificate: str = ""  # the certificate in use, PEM
    problem: str = ""  # why it does not serve what it should; empty: it does
    # number of requests by result, since the last report
    results: Mapping[str, int] = field(default_factory=dict)
    messages: Sequence[tuple[int, str]] = ()  # what is to be logged: (level, text)

    def line(self) -> bytes:
        """The line of this report."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def read(cls, line: bytes) -> WebhookReport:
        """The report of a line.

        Raises:
            ValueError: it is none, or has values of other types.
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
            raise ValueError("this is not a report: it has other results")
        return report
