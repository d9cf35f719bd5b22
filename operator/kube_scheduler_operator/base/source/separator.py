"""The line between two documents of a stream, as kubectl reads it.

That is the rule of YAMLReader in k8s.io/apimachinery/pkg/util/yaml: white space and a comment may
follow the dashes. It is the same after YAML and after JSON.
"""

from __future__ import annotations

import re
from typing import Final

SEPARATOR: Final = re.compile(r"^---[ \t\r]*(?:#.*)?(?:\n|\Z)", re.MULTILINE)
