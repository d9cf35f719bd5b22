"""Windows over a node's load: averages, their maxima, mean, standard deviation and forecast.

Shared by the exporter on the node (`scheduling/exporter/`) and by the annotator, which computes the
same from sources that only report the current load (`scheduling/annotator/`). Usage is a fraction,
0..1, of the node's capacity. Times are seconds of a monotonic clock. Every structure has a fixed
size. Standard library only.

The windows are crane's recording rules: `*_avg_5m` is the average of the last five minutes,
`*_max_avg_1h` and `*_max_avg_1d` are maxima of that average, not of single samples.
Source: gocrane/crane-scheduler, README, "Configure Prometheus Rules".
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

RESOURCES: Final = ("cpu", "mem")
"""Prefixes of the keys."""

AVERAGE_SECONDS: Final = 300.0
HOUR: Final = 3600.0
DAY: Final = 86400.0

COVERED: Final = 0.5
"""Fraction of five minutes that an average must cover to count for the maxima: the first seconds of
a node must not be its maximum for a day."""

_EMPTY: Final = -1.0


class SlidingMean:
    """The average of the values of the last `span` seconds, weighted by duration."""

    __slots__ = ("_samples", "span")

    def __init__(self, span: float = AVERAGE_SECONDS) -> None:
        self.span = span
        self._samples = array("d")  # end, seconds, value of each, oldest first

    def add(self, end: float, seconds: float, value: float) -> None:
        """Add a value for the `seconds` up to `end`; ends must not decrease."""
        self._samples.extend((end, seconds, value))
        stale = 0
        while self._samples[stale] <= end - self.span:
            stale += 3
        del self._samples[:stale]

    def read(self, now: float) -> tuple[float, float]:
        """Return the mean and the seconds that it covers; (0, 0) if empty."""
        weight = total = 0.0
        samples = self._samples
        for i in range(0, len(samples), 3):
            if samples[i] > now - self.span:
                weight += samples[i + 1]
                total += samples[i + 1] * samples[i + 2]
        return (total / weight, weight) if weight > 0 else (0.0, 0.0)

    def dump(self) -> list[float]:
        """Return all samples, flat, for `load`."""
        return [round(value, 6) for value in self._samples]

    def load(self, samples: Sequence[float], shift: float) -> None:
        """Load the output of `dump`, with times shifted by `shift`.

        Raises:
            ValueError: the samples are invalid.
        """
        numbers = _numbers(samples)
        if len(numbers) % 3 or any(
            seconds <= 0 or not 0 <= value <= 1
            for seconds, value in zip(numbers[1::3], numbers[2::3], strict=True)
        ):
            raise ValueError("invalid samples of usage")
        ends = [end + shift for end in numbers[::3]]
        if ends != sorted(ends):
            raise ValueError("samples are not in order")
        self._samples = array("d")
        for end, seconds, value in zip(ends, numbers[1::3], numbers[2::3], strict=True):
            self.add(end, seconds, value)


class _Ring:
    """Buckets of `step` seconds that cover at least the last `span` seconds."""

    __slots__ = ("_newest", "_size", "span", "step")

    def __init__(self, span: float, step: float) -> None:
        self.span, self.step = span, step
        self._size = math.ceil(span / step) + 1
        self._newest: int | None = None

    def _slot(self, at: float) -> int | None:
        """Return the slot of a time, cleared if its bucket is new; None if the time is too old."""
        bucket = math.floor(at / self.step)
        if self._newest is None:
            self._newest = bucket
        for new in range(max(self._newest + 1, bucket - self._size + 1), bucket + 1):
            self._clear(new % self._size)
        self._newest = max(self._newest, bucket)
        return None if bucket <= self._newest - self._size else bucket % self._size

    def _order(self) -> list[int]:
        """Return all slots, oldest bucket first."""
        newest = self._newest or 0
        return [(newest + 1 + i) % self._size for i in range(self._size)]

    def _clear(self, slot: int) -> None:
        raise NotImplementedError


class SlidingMax(_Ring):
    """The maximum of the last `span` seconds; the start of the window is exact to `step` seconds.

    The type code "f" instead of "d" halves the memory.
    """

    __slots__ = ("_values",)

    def __init__(self, span: float, step: float, typecode: str = "d") -> None:
        super().__init__(span, step)
        self._values = array(typecode, [_EMPTY]) * self._size

    def add(self, at: float, value: float) -> None:
        slot = self._slot(at)
        if slot is not None and value > self._values[slot]:
            self._values[slot] = value

    def read(self, now: float) -> float | None:
        """Return the maximum; None if the window is empty."""
        self._slot(now)
        greatest: float = max(self._values)
        return None if greatest == _EMPTY else greatest

    def _clear(self, slot: int) -> None:
        self._values[slot] = _EMPTY

    def dump(self) -> dict[str, Any]:
        """Return the buckets, for `load`."""
        values = [round(self._values[slot], 6) for slot in self._order()]
        return {"at": (self._newest or 0) * self.step, "values": values}

    def load(self, buckets: Mapping[str, Any], shift: float) -> None:
        """Load the output of `dump`, with times shifted by `shift`.

        Raises:
            ValueError: the buckets are invalid.
        """
        at, values = _numbers([buckets["at"]])[0], _numbers(buckets["values"])
        if not all(value == _EMPTY or 0 <= value <= 1 for value in values):
            raise ValueError("invalid maxima of usage")
        for age, value in reversed(list(enumerate(reversed(values)))):
            if value != _EMPTY:
                self.add(at + shift - age * self.step, value)


class SlidingMoments(_Ring):
    """Mean and standard deviation (of the population) over the last `span` seconds.

    Buckets are merged by the pairwise formula: Chan, Golub, LeVeque, "Updating formulae and a
    pairwise algorithm for computing sample variances", 1979.
    """

    __slots__ = ("_means", "_squares", "_weights")

    def __init__(self, span: float = DAY, step: float = 300.0, typecode: str = "d") -> None:
        super().__init__(span, step)
        self._weights = array(typecode, [0.0]) * self._size
        self._means = array(typecode, [0.0]) * self._size
        self._squares = array(typecode, [0.0]) * self._size  # weighted sums of (value - mean)^2

    def add(self, at: float, seconds: float, value: float) -> None:
        """Add a value that held for `seconds`."""
        slot = self._slot(at)
        if slot is None:
            return
        weight = self._weights[slot] + seconds
        delta = value - self._means[slot]
        self._means[slot] += delta * seconds / weight
        self._squares[slot] += seconds * delta * (value - self._means[slot])
        self._weights[slot] = weight

    def resume(self, at: float, seconds: float, mean: float, std: float) -> None:
        """Start with earlier results, as if they had held for `seconds`."""
        slot = self._slot(at)
        if slot is not None:
            self._weights[slot], self._means[slot] = seconds, mean
            self._squares[slot] = seconds * std * std

    def read(self, now: float) -> tuple[float, float] | None:
        """Return (mean, standard deviation); None if the window is empty."""
        self._slot(now)
        weight = mean = squares = 0.0
        buckets = zip(self._weights, self._means, self._squares, strict=True)
        for bucket_weight, bucket_mean, bucket_squares in buckets:
            if bucket_weight <= 0:
                continue
            delta, total = bucket_mean - mean, weight + bucket_weight
            squares += bucket_squares + delta * delta * weight * bucket_weight / total
            mean += delta * bucket_weight / total
            weight = total
        return (mean, math.sqrt(max(squares, 0.0) / weight)) if weight > 0 else None

    def _clear(self, slot: int) -> None:
        self._weights[slot] = self._means[slot] = self._squares[slot] = 0.0

    def dump(self) -> dict[str, Any]:
        """Return the buckets, for `load`."""
        rows = ((self._weights[s], self._means[s], self._squares[s]) for s in self._order())
        flat = [round(value, 6) for row in rows for value in row]
        return {"at": (self._newest or 0) * self.step, "values": flat}

    def load(self, buckets: Mapping[str, Any], shift: float) -> None:
        """Load the output of `dump`, with times shifted by `shift`.

        Raises:
            ValueError: the buckets are invalid.
        """
        at, flat = _numbers([buckets["at"]])[0], _numbers(buckets["values"])
        rows = list(zip(flat[::3], flat[1::3], flat[2::3], strict=True))
        if any(row[0] < 0 or not 0 <= row[1] <= 1 or row[2] < 0 for row in rows):
            raise ValueError("invalid moments of usage")
        for age, (weight, mean, squares) in reversed(list(enumerate(reversed(rows)))):
            slot = self._slot(at + shift - age * self.step) if weight else None
            if slot is not None and not self._weights[slot]:
                self._weights[slot], self._means[slot] = weight, mean
                self._squares[slot] = squares


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage of one resource as fractions of the node's capacity."""

    active: float  # usage in the last sample
    avg_5m: float  # average of the last five minutes
    max_avg_1h: float  # maximum of such averages in the last hour; at least avg_5m
    max_avg_1d: float  # the same in the last day; at least max_avg_1h
    mean: float  # mean of the last day
    std: float  # standard deviation of the last day


class UsageWindows:
    """All windows of one resource.

    Args:
        hour_step: step of the hour's maximum in seconds; see SlidingMax.
        day_step: step of the day's maximum.
        moments_span: window of mean and standard deviation in seconds.
        moments_step: step of that window.
        max_of_samples: whether maxima are of single samples instead of averages, as in node-metrics
            of crane-scheduler-plus under the same names.
        typecode: see SlidingMax.
    """

    __slots__ = ("_active", "_average", "_day", "_hour", "_max_of_samples", "_moments")

    def __init__(
        self,
        *,
        hour_step: float = 60.0,
        day_step: float = 300.0,
        moments_span: float = DAY,
        moments_step: float = 300.0,
        max_of_samples: bool = False,
        typecode: str = "d",
    ) -> None:
        self._active: float | None = None
        self._average = SlidingMean()
        self._hour = SlidingMax(HOUR, hour_step, typecode)
        self._day = SlidingMax(DAY, day_step, typecode)
        self._moments = SlidingMoments(moments_span, moments_step, typecode)
        self._max_of_samples = max_of_samples

    def add(self, end: float, seconds: float, value: float) -> None:
        """Add the usage in the `seconds` up to `end`; values are clamped to 0..1."""
        value = min(max(value, 0.0), 1.0)
        self._active = value
        self._average.add(end, seconds, value)
        self._moments.add(end, seconds, value)
        average, covered = self._average.read(end)
        if self._max_of_samples:
            average = value
        elif covered < COVERED * AVERAGE_SECONDS:
            return
        self._hour.add(end, average)
        self._day.add(end, average)

    def resume(self, at: float, usage: Usage) -> None:
        """Start with earlier results."""
        self._active = usage.active
        self._average.add(at, AVERAGE_SECONDS / 2, usage.avg_5m)
        self._hour.add(at, usage.max_avg_1h)
        self._day.add(at, usage.max_avg_1d)
        self._moments.resume(at, self._moments.span / 2, usage.mean, usage.std)

    def read(self, now: float) -> Usage | None:
        """Return the usage; None without values in the last five minutes."""
        average, covered = self._average.read(now)
        moments = self._moments.read(now)
        if self._active is None or not covered or moments is None:
            return None
        hour = max(average, self._hour.read(now) or 0.0)
        day = max(hour, self._day.read(now) or 0.0)
        return Usage(self._active, average, hour, day, *moments)

    def dump(self) -> dict[str, Any]:
        """Return all windows, in JSON types."""
        return {
            "average": self._average.dump(),
            "hour": self._hour.dump(),
            "day": self._day.dump(),
            "moments": self._moments.dump(),
        }

    def load(self, dumped: Mapping[str, Any], shift: float) -> None:
        """Load the output of `dump`, with times shifted by `shift`.

        Raises:
            ValueError, KeyError, TypeError: the input is invalid; discard this object.
        """
        self._average.load(dumped["average"], shift)
        self._hour.load(dumped["hour"], shift)
        self._day.load(dumped["day"], shift)
        self._moments.load(dumped["moments"], shift)


class Holt:
    """Forecast by exponential smoothing with a damped trend.

    Source: Holt 1957; damping: Gardner and McKenzie 1985; as in Hyndman and Athanasopoulos,
    "Forecasting: Principles and Practice", 3rd edition, 8.2. The three constants are within the
    ranges recommended there; they make a forecast follow a step of load within about five values.

    Args:
        level: weight of a new value, 0..1.
        trend: weight of a new trend, 0..1.
        damping: factor of the trend per step, 0.8..0.98.
    """

    __slots__ = ("_alpha", "_beta", "_level", "_phi", "_trend")

    def __init__(self, level: float = 0.4, trend: float = 0.1, damping: float = 0.9) -> None:
        self._alpha, self._beta, self._phi = level, trend, damping
        self._level: float | None = None
        self._trend = 0.0

    def add(self, value: float) -> None:
        """Add the next value; values must be equally spaced."""
        if self._level is None:
            self._level = value
            return
        carried = self._phi * self._trend
        level = self._alpha * value + (1 - self._alpha) * (self._level + carried)
        self._trend = self._beta * (level - self._level) + (1 - self._beta) * carried
        self._level = level

    def ahead(self, steps: int) -> float | None:
        """Return the forecast `steps` ahead; None before the first value."""
        if self._level is None:
            return None
        phi = self._phi
        reach = phi * (1 - phi**steps) / (1 - phi) if phi < 1 else float(steps)
        return self._level + reach * self._trend


def _numbers(values: Sequence[float]) -> list[float]:
    numbers = [float(value) for value in values]
    if not all(map(math.isfinite, numbers)):
        raise ValueError("not a finite number")
    return numbers
