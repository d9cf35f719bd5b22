"""Arrays with a value for each node."""

from ..scheduling.policies.arrays import (
    UNKNOWN,
    Bools,
    Column,
    Floats,
    Ints,
    Matrix,
    MatrixColumn,
    clip,
    np,
)

__all__ = [
    "UNKNOWN", "Bools", "Column", "Floats", "Ints", "Matrix", "MatrixColumn", "clip", "np",
]  # fmt: skip
