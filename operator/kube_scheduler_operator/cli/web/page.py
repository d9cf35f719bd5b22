"""A page of the console: a question with parameters, its typed answer, and its template.

The same answer is served as JSON; `openapi.py` describes it.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ...base.platform import Platform

if TYPE_CHECKING:
    import argparse

    from ...kube.client import ApiClient

VALUE_LENGTH: Final = 512
"""Characters of a parameter's value, unless its pattern is stricter."""

Question: TypeAlias = Mapping[str, str]
"""The parameters of a request with their defaults; each is declared by the page, and valid."""


@dataclass(frozen=True, slots=True)
class ConsoleCluster:
    """What an answer is made from: the cluster, with the identity and the rights of the caller."""

    api: ApiClient
    platform: Platform
    args: argparse.Namespace  # the flags of `console`, among them those of `add_cluster_flags`


class ParameterError(ValueError):
    """A request has a parameter that its page does not have, or a value that is not valid."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a page, in the query of its address."""

    name: str
    description: str
    pattern: str = ""  # of the whole value; empty: any text
    choices: tuple[str, ...] = ()  # empty: any text
    default: str = ""  # its value without the parameter; need not match `pattern`

    def read(self, value: str) -> str:
        """Return the value.

        Raises:
            ParameterError: it is not valid.
        """
        if value == self.default:
            return value
        if len(value) > VALUE_LENGTH:
            raise ParameterError(f"{self.name} has more than {VALUE_LENGTH} characters")
        if self.choices and value not in self.choices:
            raise ParameterError(f"{self.name} must be one of: {', '.join(self.choices)}")
        if self.pattern and not re.fullmatch(self.pattern, value):
            raise ParameterError(f"{self.name} is not valid: {self.description}")
        return value


@dataclass(frozen=True, slots=True)
class Page:
    """One page.

    `answer` returns an instance of `type`, a dataclass; KubeError and CommandError become a
    sentence on the page. It runs on the server's event loop: long computations belong in
    `asyncio.to_thread`.
    """

    name: str  # in addresses: /NAME and /api/v1/NAME
    title: str
    summary: str  # one sentence, for people and for the OpenAPI document
    type: type
    answer: Callable[[ConsoleCluster, Question], Awaitable[Any]]
    template: str  # below templates/console/; has `answer`, `question`, `page` and `console`
    parameters: Sequence[Parameter] = field(default=())
    part_of: str = (
        ""  # the page in the navigation that leads to this one; empty: it is there itself
    )
    is_live: bool = False  # whether the page shows changes by itself
    fresh: float = 5.0  # seconds for which an answer is repeated
    limit: float = 30.0  # seconds after which a computation ends without an answer
    # a quicker answer with less, which is shown until the whole one is known
    first: Callable[[ConsoleCluster, Question], Awaitable[Any]] | None = None

    def read(self, query: Mapping[str, str]) -> Question:
        """Return the parameters of a query.

        Raises:
            ParameterError: the page has no such parameter, or a value is not valid.
        """
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in query:
            if name not in known:
                names = ", ".join(known) or "none"
                raise ParameterError(f'unknown parameter "{name[:64]}"; parameters: {names}')
        return {
            name: parameter.read(query.get(name, parameter.default))
            for name, parameter in known.items()
        }
