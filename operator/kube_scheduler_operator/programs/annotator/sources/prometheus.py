"""Source Prometheus: one query for each metric and cycle, for all nodes.

crane asks for every node, up to three times: `instance` may be the node's address, its address with
a port, or its name. The same forms are found here in one answer. Where crane takes NaN and what is
negative for 0, an idle node, it is not known here.
"""

from __future__ import annotations

import asyncio
import math
import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ....load.policy import METRICS
from ..measurement import Measurement, SourceError
from .bulk import BulkSource
from .http import get_json, session

if TYPE_CHECKING:
    from ....load.policy import LoadPolicy, Source
    from ..nodes import Node

_SIZE_LIMIT: Final = 64 * 2**20

Samples = Mapping[str, Mapping[str, tuple[float, float]]]
"""Metric -> instance -> (value, time). An instance with a port is there without it as well, after
`:`, which no instance begins with."""


class Prometheus(BulkSource[Samples]):
    """Asks a Prometheus, or what has its API.

    Args:
        policy: with the address and what to ask for.
        now: seconds since 1970.
    """

    def __init__(self, policy: LoadPolicy, now: Callable[[], float] = time.time) -> None:
        super().__init__(policy.cycle, policy.source.timeout)
        self._source, self._now = policy.source, now
        self._client = session(policy.source.timeout, connections=len(METRICS), per_host=6)
        self._scale = 100.0 if policy.source.percent else 1.0

    async def ask(self) -> Samples:
        """All samples of all metrics."""
        headers, tls = _identity(self._source)
        answers = await asyncio.gather(
            *(self._query(metric, headers, tls) for metric in METRICS), return_exceptions=True
        )
        samples: dict[str, Mapping[str, tuple[float, float]]] = {}
        problems = []
        for metric, answer in zip(METRICS, answers, strict=True):
            if isinstance(answer, SourceError):
                problems.append(f"{metric}: {answer}")
            elif isinstance(answer, BaseException):
                raise answer
            else:
                samples[metric], warnings = answer
                problems += [f"{metric}: {warning}" for warning in warnings]
                if not answer[0]:
                    problems.append(f"{metric}: there are no series; are the rules recorded?")
        if not any(samples.values()):
            raise SourceError(problems[0])
        self.warning = f"Prometheus: {problems[0]}" if problems else ""
        return samples

    def find(self, answer: Samples, node: Node) -> Measurement:
        """The measurement of a node, by any of the three forms of `instance`."""
        usage, at = {}, self._now()
        for metric, instances in answer.items():
            for form in (node.address, f":{node.address}", node.name):
                if form in instances:
                    value, when = instances[form]
                    at = min(at, when)
                    if value >= 0:  # NaN is not
                        usage[metric] = min(value / self._scale, 1.0)
                    break
        if not usage:
            forms = f'"{node.address}", "{node.address}:PORT" or "{node.name}"'
            raise SourceError(f"no series has the instance {forms}")
        return Measurement(at, usage)

    async def close(self) -> None:
        """Give connections back."""
        await super().close()
        await self._client.close()

    async def _query(
        self, metric: str, headers: Mapping[str, str], tls: ssl.SSLContext | bool
    ) -> tuple[Mapping[str, tuple[float, float]], list[str]]:
        answer = await get_json(
            self._client,
            f"{self._source.url}/api/v1/query",
            data={"query": self._source.queries.get(metric, metric)},
            headers=headers,
            tls=tls,
            limit=_SIZE_LIMIT,
        )
        return read_vector(answer)


def read_vector(answer: Any) -> tuple[dict[str, tuple[float, float]], list[str]]:
    """(Samples by instance, warnings) of an instant query's answer. Raises SourceError."""
    if not isinstance(answer, Mapping) or answer.get("status") != "success":
        said = answer.get("error") if isinstance(answer, Mapping) else None
        raise SourceError(f"the query failed: {said or 'no reason given'}")
    data = answer.get("data") or {}
    if data.get("resultType") != "vector":
        raise SourceError(f"the query gives a {data.get('resultType')}, not a vector")
    found: dict[str, tuple[float, float]] = {}
    for series in data.get("result") or ():
        instance = (series.get("metric") or {}).get("instance")
        if not instance:
            continue
        sample = _sample(series.get("value"))
        found[instance] = sample
        host, colon, port = instance.rpartition(":")
        if colon and port.isdecimal():
            found[f":{host.strip('[]')}"] = sample
    return found, [str(warning) for warning in answer.get("warnings") or ()]


def _sample(pair: Any) -> tuple[float, float]:
    """(value, time); NaN for what is no number or no usage."""
    try:
        at, value = float(pair[0]), float(pair[1])
    except (TypeError, ValueError, IndexError, KeyError):
        return math.nan, 0.0
    return (value if math.isfinite(value) and value >= 0 else math.nan), at


def _identity(source: Source) -> tuple[Mapping[str, str], ssl.SSLContext | bool]:
    """What to show and whom to trust; files are read each time, for they are renewed."""
    headers = {}
    try:
        if source.token_file:
            token = Path(source.token_file).read_text().strip()
            headers["Authorization"] = f"Bearer {token}"
        if not source.url.startswith("https:"):
            return headers, True
        context = ssl.create_default_context(cafile=source.ca_file or None)
    except (OSError, ssl.SSLError) as error:
        raise SourceError(f"Prometheus: {error}") from error
    if source.insecure_skip_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return headers, context
