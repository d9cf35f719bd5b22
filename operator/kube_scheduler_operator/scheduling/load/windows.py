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

_LEVEL, _TREND, _DAMPING = 0.4, 0.1, 0.9
"""Weights of a new value and a new trend, and the factor of the trend per step. They are within the
ranges that the source of Holt recommends; a forecast follows a step of load within five values."""


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
    """Buckets of `step` seconds that cover at least the last `span` seconds.

    A bucket has a value in each of `columns`, that of `empty` if nothing was added. The type code
    "f" instead of "d" halves the memory.
    """

    __slots__ = ("_empty", "_newest", "_size", "columns", "span", "step")

    def __init__(self, span: float, step: float, typecode: str, empty: Sequence[float]) -> None:
        self.span, self.step = span, step
        self._size = math.ceil(span / step) + 1
        self._newest: int | None = None
        self._empty = empty
        self.columns = tuple(array(typecode, [value]) * self._size for value in empty)

    def _slot(self, at: float) -> int | None:
        """Return the slot of a time, cleared if its bucket is new; None if the time is too old."""
        bucket = math.floor(at / self.step)
        if self._newest is None:
            self._newest = bucket
        for new in range(max(self._newest + 1, bucket - self._size + 1), bucket + 1):
            self._put(new % self._size, self._empty)
        self._newest = max(self._newest, bucket)
        return None if bucket <= self._newest - self._size else bucket % self._size

    def _put(self, slot: int, bucket: Sequence[float]) -> None:
        for column, value in zip(self.columns, bucket, strict=True):
            column[slot] = value

    def dump(self) -> dict[str, Any]:
        """Return the buckets, oldest first, for `load`."""
        newest = self._newest or 0
        slots = [(newest + 1 + i) % self._size for i in range(self._size)]
        values = [round(column[slot], 6) for slot in slots for column in self.columns]
        return {"at": newest * self.step, "values": values}

    def load(self, buckets: Mapping[str, Any], shift: float) -> None:
        """Load the output of `dump`, with times shifted by `shift`.

        Raises:
            ValueError: the buckets are invalid.
        """
        (at,), values = _numbers([buckets["at"]]), _numbers(buckets["values"])
        count = len(self._empty)
        rows = list(zip(*(values[column::count] for column in range(count)), strict=True))
        for age, bucket in reversed(list(enumerate(reversed(rows)))):
            self._restore(at + shift - age * self.step, bucket)

    def _restore(self, at: float, bucket: Sequence[float]) -> None:
        """Add a loaded bucket: after the shift, two of them may be in one bucket."""
        raise NotImplementedError


class SlidingMax(_Ring):
    """The maximum of the last `span` seconds; the window's start is exact to `step` seconds."""

    __slots__ = ()

    def __init__(self, span: float, step: float, typecode: str = "d") -> None:
        super().__init__(span, step, typecode, (_EMPTY,))

    def add(self, at: float, value: float) -> None:
        (values,), slot = self.columns, self._slot(at)
        if slot is not None and value > values[slot]:
            values[slot] = value

    def read(self, now: float) -> float | None:
        """Return the maximum; None if the window is empty."""
        self._slot(now)
        greatest: float = max(self.columns[0])
        return None if greatest == _EMPTY else greatest

    def _restore(self, at: float, bucket: Sequence[float]) -> None:
        (value,) = bucket
        if value == _EMPTY:
            return
        if not 0 <= value <= 1:
            raise ValueError("invalid maxima of usage")
        self.add(at, value)


class SlidingMoments(_Ring):
    """Mean and standard deviation (of the population) over the last `span` seconds.

    Buckets are merged by the pairwise formula: Chan, Golub, LeVeque, "Updating formulae and a
    pairwise algorithm for computing sample variances", 1979.
    """

    __slots__ = ()

    def __init__(self, span: float = DAY, step: float = 300.0, typecode: str = "d") -> None:
        # Weight in seconds, mean, and the weighted sum of (value - mean)^2.
        super().__init__(span, step, typecode, (0.0, 0.0, 0.0))

    def add(self, at: float, seconds: float, value: float) -> None:
        """Add a value that held for `seconds`."""
        slot = self._slot(at)
        if slot is None:
            return
        weights, means, squares = self.columns
        weight = weights[slot] + seconds
        delta = value - means[slot]
        means[slot] += delta * seconds / weight
        squares[slot] += seconds * delta * (value - means[slot])
        weights[slot] = weight

    def resume(self, at: float, seconds: float, mean: float, std: float) -> None:
        """Start with earlier results, as if they had held for `seconds`."""
        slot = self._slot(at)
        if slot is not None:
            self._put(slot, (seconds, mean, seconds * std * std))

    def read(self, now: float) -> tuple[float, float] | None:
        """Return (mean, standard deviation); None if the window is empty."""
        self._slot(now)
        weight = mean = squares = 0.0
        for bucket_weight, bucket_mean, bucket_squares in zip(*self.columns, strict=True):
            if bucket_weight <= 0:
                continue
            delta, total = bucket_mean - mean, weight + bucket_weight
            squares += bucket_squares + delta * delta * weight * bucket_weight / total
            mean += delta * bucket_weight / total
            weight = total
        return (mean, math.sqrt(max(squares, 0.0) / weight)) if weight > 0 else None

    def _restore(self, at: float, bucket: Sequence[float]) -> None:
        weight, mean, squares = bucket
        if weight < 0 or not 0 <= mean <= 1 or squares < 0:
            raise ValueError("invalid moments of usage")
        slot = self._slot(at) if weight else None
        if slot is not None and not self.columns[0][slot]:
            self._put(slot, bucket)


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
    """All windows of one resource; the maxima and the moments have steps in seconds.

    With `max_of_samples`, maxima are of single samples instead of averages, as in node-metrics of
    crane-scheduler-plus under the same names.
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
    "Forecasting: Principles and Practice", 3rd edition, 8.2.
    """

    __slots__ = ("_level", "_trend")

    def __init__(self) -> None:
        self._level: float | None = None
        self._trend = 0.0

    def add(self, value: float) -> None:
        """Add the next value; values must be equally spaced."""
        if self._level is None:
            self._level = value
            return
        carried = _DAMPING * self._trend
        level = _LEVEL * value + (1 - _LEVEL) * (self._level + carried)
        self._trend = _TREND * (level - self._level) + (1 - _TREND) * carried
        self._level = level

    def ahead(self, steps: int) -> float | None:
        """Return the forecast `steps` ahead; None before the first value."""
        if self._level is None:
            return None
        reach = _DAMPING * (1 - _DAMPING**steps) / (1 - _DAMPING)
        return self._level + reach * self._trend


def _numbers(values: Sequence[float]) -> list[float]:
    numbers = [float(value) for value in values]
    if not all(map(math.isfinite, numbers)):
        raise ValueError("not a finite number")
    return numbers
