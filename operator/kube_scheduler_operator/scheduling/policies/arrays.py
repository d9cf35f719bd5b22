"""Numbers by node: columns and matrices, and numpy imported on first use.

The operator validates policy arguments in its own process, which must not load numpy; modules
therefore write `from ..arrays import np`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
else:

    class _Lazy:
        """numpy, imported on first use of an attribute."""

        def __getattr__(self, name: str) -> Any:
            import numpy

            value = getattr(numpy, name)
            setattr(self, name, value)  # later accesses find the attribute directly
            return value

    np = _Lazy()

__all__ = [
    "UNKNOWN", "Bools", "Column", "Floats", "Ints", "Matrix", "MatrixColumn", "clip", "np",
]  # fmt: skip

Floats: TypeAlias = "npt.NDArray[np.float64]"
Ints: TypeAlias = "npt.NDArray[np.intp]"
Bools: TypeAlias = "npt.NDArray[np.bool_]"

UNKNOWN: Final = math.nan


def clip(values: Floats, least: float, most: float) -> Floats:
    """Limit values, NaN unchanged: for few values at a quarter of the cost of np.clip."""
    clipped: Floats = np.minimum(np.maximum(values, least), most)
    return clipped


class Matrix:
    """Columns with the same initial value, from which one operation takes the values of nodes."""

    __slots__ = ("_data", "_default")

    def __init__(self, count: int, default: float = UNKNOWN) -> None:
        self._default = default
        self._data = np.full((count, 64), default)

    def __getitem__(self, at: tuple[int, int]) -> float:
        """Return the value of (column, node)."""
        return float(self._data[at]) if at[1] < self._data.shape[1] else self._default

    def __setitem__(self, at: tuple[int, int], value: float) -> None:
        if at[1] >= self._data.shape[1]:
            self.grow(at[1] + 1)
        self._data[at] = value

    def grow(self, size: int) -> None:
        """Make room for at least `size` nodes; this invalidates earlier arrays."""
        count, room = self._data.shape
        if size > room:
            more = np.full((count, max(size - room, room // 2)), self._default)
            self._data = np.concatenate((self._data, more), 1)

    def values(self, size: int) -> Floats:
        """Return the values of the first `size` nodes (float64[count, size])."""
        self.grow(size)
        return self._data[:, :size]

    def take(self, indices: Ints, size: int) -> Floats:
        """Return the values at `indices`, each less than `size` (float64[count, len(indices)])."""
        self.grow(size)
        return self._data.take(indices, 1)

    def of(self, index: int) -> list[float]:
        data = self._data
        if index >= data.shape[1]:
            return [self._default] * len(data)
        values: list[float] = data[:, index].tolist()
        return values

    def column(self, at: int) -> MatrixColumn:
        return MatrixColumn(self, at)


class MatrixColumn:
    """A column of a matrix."""

    __slots__ = ("_at", "_matrix")

    def __init__(self, matrix: Matrix, at: int) -> None:
        self._matrix, self._at = matrix, at

    def __getitem__(self, index: int) -> float:
        return self._matrix[self._at, index]

    def __setitem__(self, index: int, value: float) -> None:
        self._matrix[self._at, index] = value

    def values(self, size: int) -> Floats:
        """Return a writable view of the first `size` nodes (float64[size])."""
        column: Floats = self._matrix.values(size)[self._at]
        return column

    def take(self, indices: Ints, size: int) -> Floats:
        """Return the values at `indices`, each less than `size` (float64[len(indices)])."""
        return self.values(size).take(indices)


class Column(MatrixColumn):
    """One float64 per node, by node index; NaN where unknown. It grows automatically."""

    __slots__ = ()

    def __init__(self, default: float = UNKNOWN) -> None:
        super().__init__(Matrix(1, default), 0)
