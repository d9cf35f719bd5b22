"""The OpenAPI 3.1 document of the console's JSON, from the dataclasses of its answers.

A field is as `field_types.document_of` writes it.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import types
import typing
from collections.abc import Sequence
from typing import Any, Final

from ... import __version__
from ...base.field_types import KUBERNETES, camel_case, hints_of
from .page import Page, Parameter

API: Final = "/api/v1"

_SCALARS: Final[dict[Any, dict[str, Any]]] = {
    Any: {},
    object: {},
    type(None): {"type": "null"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
}
_MAPPINGS: Final = (dict, collections.abc.Mapping)
_ERROR: Final = {
    "type": "object",
    "properties": {"error": {"type": "string", "description": "One sentence."}},
    "required": ["error"],
}


class _Schemas:
    """The schemas of dataclasses, by name; each is written once."""

    def __init__(self) -> None:
        self.found: dict[str, Any] = {}
        self._names: dict[type, str] = {}

    def of(self, hint: Any) -> dict[str, Any]:
        origin = typing.get_origin(hint) or hint
        arguments = typing.get_args(hint)
        if origin in _SCALARS:
            return dict(_SCALARS[origin])
        if origin is typing.Annotated:
            return self.of(arguments[0])
        if origin is typing.Literal:
            return {"enum": list(arguments)}
        if origin in (typing.Union, types.UnionType):
            return {"anyOf": [self.of(argument) for argument in arguments]}
        if dataclasses.is_dataclass(origin):
            return {"$ref": f"#/components/schemas/{self._record(origin)}"}
        return self._collection(hint, origin, arguments)

    def _collection(self, hint: Any, origin: Any, arguments: Any) -> dict[str, Any]:
        if origin in _MAPPINGS:
            return {
                "type": "object",
                "additionalProperties": self.of(arguments[1] if arguments else Any),
            }
        if origin is tuple and arguments and arguments[-1] is not Ellipsis:
            items = [self.of(argument) for argument in arguments]
            return {"type": "array", "prefixItems": items, "minItems": len(items)}
        if isinstance(origin, type) and issubclass(origin, enum.Enum):
            return {"enum": [member.value for member in origin]}
        if isinstance(origin, type) and issubclass(origin, collections.abc.Collection):
            return {"type": "array", "items": self.of(arguments[0] if arguments else Any)}
        raise TypeError(f"{hint} has no schema")

    def _record(self, made: Any) -> str:
        if made in self._names:
            return self._names[made]
        name: str = made.__name__.lstrip("_")
        if name in self.found:
            name = f"{made.__module__.rpartition('.')[2]}.{name}"
        self._names[made] = name
        self.found[name] = {}  # its place, for records that contain themselves
        hints = hints_of(made)
        properties = {
            document_name: self.of(hints[field.name])
            for field in dataclasses.fields(made)
            if (document_name := KUBERNETES.of(field))
        }
        for derived in getattr(made, "DERIVED", ()):
            properties[camel_case(derived)] = self.of(_returned(made, derived))
        schema: dict[str, Any] = {"type": "object", "properties": properties}
        if made.__doc__ and not made.__doc__.startswith(f"{made.__name__}("):
            schema["description"] = made.__doc__.partition("\n")[0]
        schema["required"] = list(properties)
        self.found[name] = schema
        return name


def _returned(made: Any, name: str) -> Any:
    return hints_of(getattr(made, name).fget)["return"]


def _parameter(parameter: Parameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", "default": parameter.default}
    if parameter.choices:
        schema["enum"] = list(dict.fromkeys((parameter.default, *parameter.choices)))
    if parameter.pattern:
        schema["pattern"] = f"^(?:{parameter.pattern})?$"
    return {
        "name": parameter.name,
        "in": "query",
        "required": False,
        "description": parameter.description,
        "schema": schema,
    }


def _json(schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def openapi_document(pages: Sequence[Page]) -> dict[str, Any]:
    """Return the document for the answers of these pages."""
    schemas = _Schemas()
    error = {"$ref": "#/components/schemas/Error"}
    paths = {
        f"{API}/{page.name}": {
            "get": {
                "operationId": page.name.replace("-", "_"),
                "summary": page.summary,
                "parameters": [_parameter(parameter) for parameter in page.parameters],
                "responses": {
                    "200": _json(schemas.of(page.type), "The answer."),
                    "400": _json(error, "A parameter is not valid."),
                    "403": _json(error, "The request has no token, or is another page's."),
                    "503": _json(error, "The answer is not known; the sentence has the reason."),
                },
            }
        }
        for page in pages
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "kubectl scheduler console",
            "version": __version__,
            "description": "The answers of `kubectl scheduler`, with the rights of its caller. "
            "Read only.",
        },
        "security": [{"token": []}, {"cookie": []}],
        "paths": paths,
        "components": {
            "schemas": {**schemas.found, "Error": _ERROR},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "kube-scheduler-console-PORT"},
            },
        },
    }
