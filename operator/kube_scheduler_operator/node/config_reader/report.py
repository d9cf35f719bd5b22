"""The content of a configuration file as a termination message, the way to the operator.

The reader has no API access. Its message is compressed, because a container's has 4096 bytes.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ...base.foreign_text import foreign
from ...base.json_text import parse_json
from ..protocol.message import LIMIT

LARGEST: Final = 2**20
"""Bytes of a file that is read, and of a document that is unpacked; a ConfigMap has no more."""


@dataclass(frozen=True, slots=True)
class ConfigReport:
    """The content of a file, or why it cannot be adopted."""

    config: Mapping[str, Any] | None = None  # the document
    # the problem and the fix; of the file, it has only names of fields
    error: str = ""

    def serialise(self) -> str:
        """Return the termination message; an error if the document does not fit."""
        if self.config is None:
            return json.dumps({"error": self.error})
        text = json.dumps(self.config, sort_keys=True, separators=(",", ":"))
        packed = base64.b85encode(zlib.compress(text.encode(), 9)).decode()
        message = json.dumps({"config": packed})
        if len(message) <= LIMIT:
            return message
        error = (
            f"the file has {len(message)} bytes when compressed, and {LIMIT} can be read from a "
            "node; move its settings to SchedulerProfiles and spec.unsupportedConfigOverrides of "
            "KubeScheduler, and shorten it"
        )
        return ConfigReport(error=error).serialise()

    @classmethod
    def parse(cls, text: str) -> ConfigReport | None:
        """Return the report in a termination message; None for anything else."""
        try:
            document = parse_json(text)
            if not isinstance(document, Mapping):
                return None
            if "error" in document:
                return cls(error=foreign(str(document["error"]), LIMIT))
            unpacker = zlib.decompressobj()
            data = unpacker.decompress(base64.b85decode(document["config"]), LARGEST)
            config = parse_json(data.decode())
        except (KeyError, TypeError, ValueError, binascii.Error, zlib.error):
            return None
        return cls(config) if isinstance(config, Mapping) else None
