"""Renders jinja2 templates into Kubernetes objects.

Templates pass every value through `tojson`, so no value can change the structure of an object. The
same input always gives the same object: nothing here reads the clock or the cluster.
"""

from __future__ import annotations

import hashlib
import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import yaml

from . import assets

if TYPE_CHECKING:
    import jinja2

NAME_LIMIT: Final = 253
_LABEL_LIMIT: Final = 63

_ESCAPE: Final = re.compile(r"\\(?:u(d[89ab]..)\\u(d[c-f]..)|.)", re.DOTALL)

# libyaml's loader if available: the same result, ten times faster.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def render_documents(template: str, **values: Any) -> list[dict[str, Any]]:
    """Render a template given as text to objects; empty documents are omitted.

    Raises:
        jinja2.TemplateError: the template is invalid or uses an undefined value.
        yaml.YAMLError: the output is not YAML.
        ValueError: a document of the output is not an object.
    """
    documents = _documents(_environment().from_string(template).render(**values))
    for document in documents:
        if not isinstance(document, dict):
            raise ValueError(f"{type(document).__name__} where an object belongs")
    return documents


def render_file(template: str, **values: Any) -> list[dict[str, Any]]:
    """Render one of the operator's templates to objects; empty documents are omitted."""
    return _documents(_environment().get_template(template).render(**values))


def _documents(text: str) -> list[dict[str, Any]]:
    documents = yaml.load_all(text, Loader=_Loader)
    return [document for document in documents if document is not None]


def render_object(template: str, **values: Any) -> dict[str, Any]:
    """Render one of the operator's templates to its only object."""
    text = _environment().get_template(template).render(**values)
    document = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    result: dict[str, Any] = json.loads(canonical_json(document))
    return result


def label_value(node: str) -> str:
    """The name of `node` as a label value: at most 63 characters, where names have up to 253."""
    return fit_name(node, _LABEL_LIMIT)


def canonical_json(document: Any) -> str:
    """Canonical JSON of a document: compact, keys sorted, with a newline at the end."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"


def fit_name(name: str, limit: int) -> str:
    """`name`, or its beginning and a hash if it is longer than `limit`."""
    if len(name) <= limit:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:10]
    return f"{name[: limit - len(digest) - 1].rstrip('-.')}-{digest}"


def _yaml_string(value: Any, **options: Any) -> str:
    """JSON that YAML reads identically: a character beyond U+FFFF is one escape, not two halves."""
    text = json.dumps(value, **options)
    return _ESCAPE.sub(_whole_character, text)


def _whole_character(escape: re.Match[str]) -> str:
    if escape[1] is None:
        return escape[0]
    high, low = int(escape[1], 16), int(escape[2], 16)
    return f"\\U{0x10000 + ((high & 0x3FF) << 10) + (low & 0x3FF):08x}"


@cache
def _environment() -> jinja2.Environment:
    # On first use: checks of files import this module and render nothing, without jinja2 installed.
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: assets.text("templates", name)),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 - YAML, and every value passes tojson
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.policies["json.dumps_function"] = _yaml_string
    return environment
