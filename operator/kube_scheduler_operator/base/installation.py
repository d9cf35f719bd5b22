"""The error of a damaged installation of this package."""

from __future__ import annotations


class InstallationError(ImportError):
    """A package is installed and cannot be imported; the message states the cause and the fix."""
