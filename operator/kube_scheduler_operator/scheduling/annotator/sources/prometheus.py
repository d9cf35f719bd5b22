"""Source Prometheus: one query for each metric and cycle, for all nodes.

crane sends up to three queries per node: `instance` may be the node's address, its address with a
port, or its name. Here one response serves all three forms. crane treats NaN and negative
values as 0, an idle node; here they are unknown.
"""

from __future__ import annotations

import asyncio
import math
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from ...load.policy import METRICS, LoadPolicy, SourceSpec
from ..measurement import Measurement, MeasurementError
from ..nodes import AnnotatedNode
from .bulk import BulkSource
from .http import get_json, session

_SIZE_LIMIT: Final = 64 * 2**20

Samples = Mapping[str, Mapping[str, tuple[float, float]]]
"""Metric -> instance -> (value, time). An instance with a port is also stored without it, prefixed
with `:`, with which no instance starts."""


class Prometheus(BulkSource[Samples]):
    """Queries Prometheus or a compatible API."""

    def __init__(self, policy: LoadPolicy, now: Callable[[], float]) -> None:
        super().__init__(policy.cycle, policy.source.timeout)
        self._source, self._now = policy.source, now
        self._client = session(policy.source.timeout, connections=len(METRICS), per_host=6)
        self._scale = 100.0 if policy.source.percent else 1.0

    async def fetch(self) -> Samples:
        """Return all samples of all metrics."""
        headers, tls = _identity(self._source)
        responses = await asyncio.gather(
            *(self._query(metric, headers, tls) for metric in METRICS), return_exceptions=True
        )
        samples: dict[str, Mapping[str, tuple[float, float]]] = {}
        problems = []
        for metric, response in zip(METRICS, responses, strict=True):
            if isinstance(response, MeasurementError):
                problems.append(f"{metric}: {response}")
            elif isinstance(response, BaseException):
                raise response
            else:
                samples[metric], warnings = response
                problems += [f"{metric}: {warning}" for warning in warnings]
                if not response[0]:
                    problems.append(f"{metric}: no series found; are the recording rules loaded?")
        if not any(samples.values()):
            raise MeasurementError(problems[0])
        self.warning = f"Prometheus: {problems[0]}" if problems else ""
        return samples

    def find(self, response: Samples, node: AnnotatedNode) -> Measurement:
        """Return the measurement of a node, by any of the three forms of `instance`."""
        usage, oldest = {}, math.inf
        for metric, instances in response.items():
            for form in (node.address, f":{node.address}", node.name):
                if form in instances:
                    value, when = instances[form]
                    oldest = min(oldest, when)
                    if value >= 0:  # excludes NaN
                        usage[metric] = min(value / self._scale, 1.0)
                    break
        if not usage:
            forms = f'"{node.address}", "{node.address}:PORT" or "{node.name}"'
            raise MeasurementError(f"no series has instance {forms}")
        return Measurement(node.seen(oldest, self._now()), usage)

    async def close(self) -> None:
        await super().close()
        await self._client.close()

    async def _query(
        self, metric: str, headers: Mapping[str, str], tls: ssl.SSLContext | bool
    ) -> tuple[Mapping[str, tuple[float, float]], list[str]]:
        response = await get_json(
            self._client,
            f"{self._source.url}/api/v1/query",
            data={"query": self._source.queries.get(metric, metric)},
            headers=headers,
            tls=tls,
            limit=_SIZE_LIMIT,
        )
        return read_vector(response)


def read_vector(response: Any) -> tuple[dict[str, tuple[float, float]], list[str]]:
    """Return samples by instance, and warnings. Raises MeasurementError."""
    if not isinstance(response, Mapping) or response.get("status") != "success":
        raise MeasurementError("the query failed; try it in Prometheus, which shows the reason")
    data = response.get("data") or {}
    if data.get("resultType") != "vector":
        raise MeasurementError("the query does not return an instant vector; correct it")
    samples: dict[str, tuple[float, float]] = {}
    for series in data.get("result") or ():
        instance = (series.get("metric") or {}).get("instance")
        if not instance:
            continue
        sample = _sample(series.get("value"))
        samples[instance] = sample
        host, colon, port = instance.rpartition(":")
        if colon and port.isdecimal():
            samples[f":{host.strip('[]')}"] = sample
    warned = "the response has warnings; try the query in Prometheus, which shows them"
    return samples, [warned] if response.get("warnings") else []


def _sample(pair: Any) -> tuple[float, float]:
    """Return (value, time); NaN for an invalid or negative value."""
    try:
        at, value = float(pair[0]), float(pair[1])
    except (TypeError, ValueError, IndexError, KeyError):
        return math.nan, 0.0
    return (value if math.isfinite(value) and value >= 0 else math.nan), at


def _identity(source: SourceSpec) -> tuple[Mapping[str, str], ssl.SSLContext | bool]:
    """Return the headers and TLS context; the files are read each time because they are renewed."""
    headers = {}
    try:
        if source.token_file:
            token = Path(source.token_file).read_text().strip()
            headers["Authorization"] = f"Bearer {token}"
        if not source.url.startswith("https:"):
            return headers, True
        context = ssl.create_default_context(cafile=source.ca_file or None)
    except (OSError, ssl.SSLError) as error:
        raise MeasurementError(f"Prometheus: {error}") from error
    if source.insecure_skip_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return headers, context
