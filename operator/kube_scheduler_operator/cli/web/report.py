"""All pages as one static file, to attach to a ticket.

The file has no script and loads nothing, and at most LARGEST bytes: a section that would exceed
them is left out, with a sentence.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from markupsafe import Markup

from ... import __version__
from ...base import assets
from ...base.defects import contained
from ...kube.errors import KubeError
from ...simulate.pending import WaitingPods
from ..console.errors import CommandError, error_message
from ..console.output import counted
from .answers import Answered
from .page import ConsoleCluster, Page
from .pages import compare, waiting, what_if, why
from .registry import PAGES
from .rendering import Templates, identity_flags

LARGEST: Final = 4 * 1024 * 1024
"""Bytes of a report: attachments of ticket systems are often limited to 5 or 10 MB."""

_FORM: Final = re.compile("<form.*?</form>", re.DOTALL)
_ID: Final = re.compile('\\b(id|href)="(#?)(?!/)')
_LINK: Final = re.compile('href="/([a-z-]+)[^"]*"')
_EXPLAINED: Final = 5
"""Waiting Pods that the report explains: those for which changes were tried."""


@dataclass(frozen=True, slots=True)
class Section:
    name: str
    title: str
    html: Markup
    problem: str = ""  # why its answer is not known


async def report(cluster: ConsoleCluster, where: str, profile: str) -> tuple[str, list[str]]:
    """Return (the file, what is not known of it); with a profile, it has "what if" as well."""
    templates = Templates(identity_flags(cluster.args), links=False)
    sections = [section async for section in _sections(cluster, templates, profile)]
    kept = list(_bounded(sections))
    html = templates.render(
        "report.html.j2",
        sections=kept,
        css=Markup(assets.text("bindata", "console/console.css")),  # noqa: S704 - our own file
        where=where,
        made_at=f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S %Z}",
        version=__version__,
    )
    return html, [f"{each.title}: {each.problem}" for each in kept if each.problem]


async def _sections(
    cluster: ConsoleCluster, templates: Templates, profile: str
) -> AsyncIterator[Section]:
    for page in PAGES:
        question = page.read({})
        if page.name == why.PAGE.name:
            continue  # those of the causes
        if page.name == what_if.PAGE.name:
            if not profile:
                continue
            question = page.read({"profile": profile})
        answered = await _answered(cluster, page, question)
        if page.name == compare.PAGE.name and answered.value is None:
            continue  # there is one revision yet
        yield _section(templates, page, question, answered)
        if page.name == waiting.PAGE_CAUSES.name and answered.value is not None:
            for own in _explained(answered.value):
                shown = replace(page_of_why(own), name=f"why-{own.asked}")
                yield _section(templates, shown, why.PAGE.read({}), Answered(own))


def page_of_why(own: why.Why) -> Page:
    """Return the page about one Pod, which has its name in its title."""
    return replace(why.PAGE, title=f"Why {own.namespace}/{own.asked} waits")


def _explained(pending: WaitingPods) -> Iterator[why.Why]:
    """Yield the explanations that the answer about all waiting Pods has already."""
    diagnoses = (group.diagnosis for group in pending.groups if group.diagnosis is not None)
    for diagnosis, _ in zip(diagnoses, range(_EXPLAINED), strict=False):
        namespace, _, name = diagnosis.pod.partition("/")
        yield why.Why(name, namespace, replace(diagnosis, decided_by=pending.decided_by))


async def _answered(cluster: ConsoleCluster, page: Page, question: Mapping[str, str]) -> Answered:
    try:
        async with asyncio.timeout(page.limit):
            return Answered(await page.answer(cluster, question))
    except TimeoutError:
        return Answered(problem=f"not known: no answer within {page.limit:g} seconds")
    except (KubeError, CommandError) as error:
        return Answered(problem=error_message(error))


def _section(
    templates: Templates, page: Page, question: Mapping[str, str], answered: Answered
) -> Section:
    def rendered(known: Answered) -> Section:
        values: dict[str, Any] = {"page": page, "question": question, "answered": known}
        html = templates.render("section.html.j2", answer=known.value, **values)
        return Section(page.name, page.title, Markup(_alone(html, page.name)), known.problem)  # noqa: S704 - escaped by the template

    try:
        return rendered(answered)
    except Exception as error:  # the other sections are known
        return rendered(Answered(problem=f"not known: {contained('template', page.name, error)}"))


def _alone(html: str, name: str) -> str:
    """Return a page without forms, with ids that no other one has, and links within the file.

    Quotes and angle brackets of values are escaped, so only templates have these elements.
    """
    html = _ID.sub(rf'\1="\g<2>{name}-', _FORM.sub("", html))
    return _LINK.sub(r'href="#section-\1"', html)


def _bounded(sections: list[Section]) -> Iterator[Section]:
    room = LARGEST
    for section in sections:
        size = len(section.html.encode())
        if size <= room:
            room -= size
            yield section
        else:
            kib = counted(size // 1024, "KiB")
            sentence = f"left out: it has {kib}, and the report has room for {room // 1024}"
            html = Markup("<p>{}.</p>").format(sentence[0].upper() + sentence[1:])
            yield Section(section.name, section.title, html, sentence)
