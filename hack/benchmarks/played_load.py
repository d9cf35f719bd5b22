"""Exporters of thousands of nodes, played by one process: `played_load.py PORT NODES SEED`.

Every node has an address of its own in 127.0.0.0/8, so one listener on all of them knows which node
is asked. Load is what a cluster's is like, and the same for the same seed: a level of its own for
each node, a day's rise and fall, a random walk that returns (Ornstein-Uhlenbeck), noise of single
samples, and bursts. A day of it has passed before the first request.

Sampled every 15 s as node-metrics does, in columns, because objects would cost minutes.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

STEP = 15.0
DAY = 86400.0
CPU_MILLI, MEMORY = 16_000, 64 * 2**30
_AVERAGE = 20  # samples of five minutes
_HOUR, _DAY = 240, 5760  # samples


@dataclass(frozen=True, slots=True)
class Shape:
    """How one resource is used, fractions and seconds."""

    level: tuple[float, float]  # lowest and highest level of a node
    daily: float  # greatest rise and fall of a day
    walk: float  # standard deviation of the random walk
    memory: float  # how long that remembers where it was
    noise: float  # of single samples
    burst_every: float  # mean pause between bursts
    burst_for: float  # their mean length
    burst: tuple[float, float]  # their lowest and highest height


SHAPES = {
    "cpu": Shape((0.15, 0.6), 0.2, 0.08, 1200.0, 0.05, 7200.0, 300.0, (0.2, 0.5)),
    "mem": Shape((0.3, 0.7), 0.05, 0.04, 3600.0, 0.005, 14400.0, 1800.0, (0.05, 0.15)),
}


class Played:
    """One resource of all nodes."""

    def __init__(self, shape: Shape, nodes: int, rng: np.random.Generator) -> None:
        self._shape, self._rng, self._nodes = shape, rng, nodes
        self._level = rng.uniform(*shape.level, nodes)
        self._daily = rng.uniform(0.0, shape.daily, nodes)
        self._phase = rng.uniform(0.0, 1.0, nodes)
        self._walk = rng.normal(0.0, shape.walk, nodes)
        self._burst = np.zeros(nodes)
        self._burst_until = np.full(nodes, -1.0)
        self._recent = np.zeros((_AVERAGE, nodes), np.float32)
        self._averages = np.zeros((_DAY, nodes), np.float32)
        self._sum, self._squares, self._count = np.zeros(nodes), np.zeros(nodes), 0
        self._hour = self._day = np.zeros(nodes)
        self.active = self.average = np.zeros(nodes)

    def step(self, number: int) -> None:
        """Take the next sample of all nodes."""
        shape, rng, at = self._shape, self._rng, number * STEP
        keep = np.exp(-STEP / shape.memory)
        spread = shape.walk * np.sqrt(1 - keep * keep)
        self._walk = self._walk * keep + rng.normal(0.0, spread, self._nodes)
        begins = rng.random(self._nodes) < STEP / shape.burst_every
        self._burst = np.where(begins, rng.uniform(*shape.burst, self._nodes), self._burst)
        lengths = at + rng.exponential(shape.burst_for, self._nodes)
        self._burst_until = np.where(begins, lengths, self._burst_until)
        usage = (
            self._level
            + self._daily * np.sin(2 * np.pi * (at / DAY + self._phase))
            + self._walk
            + np.where(self._burst_until > at, self._burst, 0.0)
            + rng.normal(0.0, shape.noise, self._nodes)
        )
        self.active = np.clip(usage, 0.005, 0.995)
        self._recent[number % _AVERAGE] = self.active
        if number >= _AVERAGE:
            self.average = self._recent.mean(axis=0)
            self._averages[number % _DAY] = self.average
        self._sum += self.active
        self._squares += self.active**2
        self._count += 1

    def look(self, number: int) -> None:
        """Compute the maxima, which are read only from now on."""
        last = np.arange(max(number - _HOUR + 1, 0), number + 1) % _DAY
        self._hour = self._averages[last].max(axis=0)
        self._day = self._averages.max(axis=0)

    def statistics(self, name: str, node: int, capacity: float) -> dict[str, float]:
        """The statistics that an exporter serves for one node."""
        mean = self._sum[node] / self._count
        std = max(self._squares[node] / self._count - mean * mean, 0.0) ** 0.5
        amount = "memory" if name == "mem" else name
        return {
            f"{name}_usage_active": 100.0 * float(self.active[node]),
            f"{name}_usage_avg_5m": 100.0 * float(self.average[node]),
            f"{name}_usage_max_avg_1h": 100.0 * float(self._hour[node]),
            f"{name}_usage_max_avg_1d": 100.0 * float(self._day[node]),
            f"free_{amount}_mean": float((1 - mean) * capacity),
            f"free_{amount}_std": float(std * capacity),
            f"capacity_{amount}": float(capacity),
        }


class Exporters:
    """All of them."""

    def __init__(self, nodes: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self._played = {name: Played(shape, nodes, rng) for name, shape in SHAPES.items()}
        self._number = -1
        for _ in range(_DAY):
            self._advance()
        self._look()

    async def run(self) -> None:
        """Take samples until cancelled."""
        began = time.monotonic()
        first = self._number
        while True:
            await asyncio.sleep(STEP - (time.monotonic() - began) % STEP)
            while (self._number - first) * STEP < time.monotonic() - began - 1:
                self._advance()
            self._look()

    def answer(self, node: int) -> bytes:
        """The body for a node."""
        statistics: dict[str, Any] = {"age": time.monotonic() - self._sampled}
        for name, played in self._played.items():
            statistics.update(played.statistics(name, node, CPU_MILLI if name == "cpu" else MEMORY))
        return json.dumps(statistics).encode()

    def _advance(self) -> None:
        self._number += 1
        for played in self._played.values():
            played.step(self._number)

    def _look(self) -> None:
        for played in self._played.values():
            played.look(self._number)
        self._sampled = time.monotonic()


class Protocol(asyncio.Protocol):
    """One request."""

    def __init__(self, exporters: Exporters) -> None:
        self._exporters = exporters

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember who is asked."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._node = node_of(transport.get_extra_info("sockname")[0])

    def data_received(self, data: bytes) -> None:
        """Answer and close; requests are small and come whole."""
        del data
        body = self._exporters.answer(self._node)
        head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
        self._transport.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        self._transport.close()


def node_of(address: str) -> int:
    """The node that has an address."""
    _, high, middle, low = (int(part) for part in address.split("."))
    return ((high - 1) * 250 + middle) * 250 + low - 1


async def main() -> None:
    port, nodes, seed = (int(word) for word in sys.argv[1:4])
    exporters = Exporters(nodes, seed)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Protocol(exporters), "0.0.0.0", port, backlog=1024)
    print("ready", flush=True)
    async with server:
        await exporters.run()


if __name__ == "__main__":
    asyncio.run(main())
