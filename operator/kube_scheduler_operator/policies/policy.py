"""The base class of all policies, its arguments and its results."""

from ..scheduling.policies.policy import (
    BEST,
    GROUP,
    Arguments,
    ArgumentsError,
    Policy,
    Rejections,
    argument,
)

__all__ = ["BEST", "GROUP", "Arguments", "ArgumentsError", "Policy", "Rejections", "argument"]
