"""Arrays with a value for each node."""

from ..scheduling.policies.arrays import Column, Matrix, MatrixColumn, np

__all__ = ["Column", "Matrix", "MatrixColumn", "np"]
