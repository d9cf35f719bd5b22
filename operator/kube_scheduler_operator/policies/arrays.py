"""Numbers by node: numpy when it is first needed, and columns that can do without it.

The operator reads the policies' argument definitions in its own process, which must not load
numpy; modules therefore write `from ..arrays import np`.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.intp]
    Bools = npt.NDArray[np.bool_]
else:

    class _Lazy:
        """numpy, imported when the first of its names is asked for."""

        def __getattr__(self, name: str) -> Any:
            import numpy

            value = getattr(numpy, name)
            setattr(self, name, value)  # the next time it is an attribute like any other
            return value

    np = _Lazy()

__all__ = [
    "UNKNOWN", "Bools", "Column", "Floats", "Ints", "Matrix", "MatrixColumn", "clip", "np",
    "rows",
]  # fmt: skip

UNKNOWN: Final = math.nan


def rows(indices: Sequence[int] | Ints) -> Ints:
    """Node indices as an array that columns can be indexed with (intp[len(indices)])."""
    return np.asarray(indices, np.intp)


def clip(values: Floats, least: float, most: float) -> Floats:
    """Values within bounds, NaN as it is: np.clip at a quarter of its cost for few values."""
    found: Floats = np.minimum(np.maximum(values, least), most)
    return found


class Column:
    """One float64 a node, by node index; NaN where nothing is known. It grows by itself.

    Single values are read and written as Python floats, which is three times as fast as through
    numpy; `values` is the same memory as an array.
    """

    __slots__ = ("_array", "_data", "_default")

    def __init__(self, default: float = UNKNOWN) -> None:
        self._data = array("d")
        self._array: Floats | None = None
        self._default = default

    def __getitem__(self, index: int) -> float:
        data = self._data
        return data[index] if index < len(data) else self._default

    def __setitem__(self, index: int, value: float) -> None:
        if index >= len(self._data):
            self.grow(index + 1)
        self._data[index] = value

    def __len__(self) -> int:
        return len(self._data)

    def grow(self, size: int) -> None:
        """Make room for `size` nodes at least; arrays that were taken before are then old."""
        missing = size - len(self._data)
        if missing > 0:
            missing = max(missing, len(self._data) // 2, 64)
            self._array = None
            # A new object: the old one cannot be resized as long as an array looks at it.
            self._data = self._data + array("d", (self._default,)) * missing

    def values(self, size: int) -> Floats:
        """The values of the first `size` nodes (float64[size]); writing to it writes the column."""
        self.grow(size)
        if self._array is None:
            self._array = np.frombuffer(self._data, np.float64)
        return self._array[:size]

    def take(self, indices: Ints, size: int) -> Floats:
        """The values at `indices`, each less than `size` (float64[len(indices)])."""
        return self.values(size).take(indices)


class Matrix:
    """Several columns side by side, so that one operation takes the rows of nodes from all.

    Args:
        count: how many columns.
        default: where nothing was written.
    """

    __slots__ = ("_data", "_default")

    def __init__(self, count: int, default: float = UNKNOWN) -> None:
        self._default = default
        self._data = np.full((count, 64), default)

    def __getitem__(self, at: tuple[int, int]) -> float:
        """The value of (column, node)."""
        return float(self._data[at]) if at[1] < self._data.shape[1] else self._default

    def __setitem__(self, at: tuple[int, int], value: float) -> None:
        if at[1] >= self._data.shape[1]:
            self.grow(at[1] + 1)
        self._data[at] = value

    def grow(self, size: int) -> None:
        """Make room for `size` nodes at least; arrays that were taken before are then old."""
        count, room = self._data.shape
        if size > room:
            more = np.full((count, max(size - room, room // 2)), self._default)
            self._data = np.concatenate((self._data, more), 1)

    def values(self, size: int) -> Floats:
        """The values of the first `size` nodes (float64[count, size])."""
        self.grow(size)
        return self._data[:, :size]

    def take(self, indices: Ints, size: int) -> Floats:
        """The values at `indices`, each less than `size` (float64[count, len(indices)])."""
        self.grow(size)
        return self._data.take(indices, 1)

    def of(self, index: int) -> list[float]:
        """What they have of one node."""
        data = self._data
        if index >= data.shape[1]:
            return [self._default] * len(data)
        found: list[float] = data[:, index].tolist()
        return found

    def column(self, at: int) -> MatrixColumn:
        """One of them."""
        return MatrixColumn(self, at)


class MatrixColumn:
    """A column of a matrix, to be used like a Column."""

    __slots__ = ("_at", "_matrix")

    def __init__(self, matrix: Matrix, at: int) -> None:
        self._matrix, self._at = matrix, at

    def __getitem__(self, index: int) -> float:
        return self._matrix[self._at, index]

    def __setitem__(self, index: int, value: float) -> None:
        self._matrix[self._at, index] = value

    def values(self, size: int) -> Floats:
        """See Column."""
        found: Floats = self._matrix.values(size)[self._at]
        return found

    def take(self, indices: Ints, size: int) -> Floats:
        """See Column."""
        return self.values(size).take(indices)
