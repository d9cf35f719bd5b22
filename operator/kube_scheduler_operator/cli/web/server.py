"""The server of the console.

A page comes in two parts: its head at once, and the rest when its answer is known, or after
PATIENCE seconds with what is known then. With JavaScript, htmx replaces that rest: when the answer
of a slow question is there, and on live pages whenever it changes. Without, a link reloads.
"""

from __future__ import annotations

import asyncio
import mimetypes
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

from aiohttp import web
from markupsafe import Markup

from ...base import assets
from ...base.defects import contained
from ...base.field_types import document_of
from ...base.foreign_text import json_text
from ...serving.handled import HandledConnections
from .answers import Answered, Answers
from .openapi import API, openapi_document
from .page import ConsoleCluster, Page, ParameterError, Question
from .port import listening
from .registry import PAGES
from .rendering import Templates, identity_flags
from .security import HEADERS, TOKEN, Guard, RefusedRequest

PATIENCE: Final = 4.0
"""Seconds that a page waits for its answer."""

LIVE_INTERVAL: Final = 2.0
LIVE_COMMENT: Final = 15.0
"""Seconds between two looks of a live page, and between two signs of life without a change."""

LIVE_PAGES: Final = 4
"""Live pages that keep a connection at the same time: a browser has six for all of its tabs. A
further one takes the place of the oldest, which connects again after LIVE_TURN seconds."""
LIVE_TURN: Final = 10

SEEN: Final = "seen"
SEEN_AGAIN: Final = "Last-Event-ID"
"""The parameter, and the header of a page that connects again, with the version that it shows:
while there is no other one, it gets nothing."""

STATIC: Final = ("console.css", "console.js", "htmx.min.js", "htmx-ext-sse.min.js", "icon.svg")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(slots=True)
class Console:
    """One server: its cluster, its guard and its answers."""

    cluster: ConsoleCluster
    guard: Guard
    where: str  # the cluster, as the head of each page names it
    pages: Sequence[Page] = PAGES
    templates: Templates = field(init=False)
    answers: Answers = field(init=False)
    connections: HandledConnections = field(default_factory=HandledConnections)
    # the places of live pages, the oldest first: its timeout ends one
    _live: list[asyncio.Timeout] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.templates = Templates(identity_flags(self.cluster.args))
        self.answers = Answers(self.cluster)

    def application(self) -> web.Application:
        app = web.Application(middlewares=[self._guarded])
        app.router.add_get("/", self._first)
        app.router.add_get("/static/{name}", self._static)
        app.router.add_get(f"{API}/openapi.json", self._openapi)
        app.router.add_get(f"{API}/{{page}}", self._json)
        app.router.add_get("/fragments/{page}", self._fragment)
        app.router.add_get("/events/{page}", self._events)
        app.router.add_get("/{page}", self._page)
        app.on_response_prepare.append(self._with_headers)
        app.on_cleanup.append(self._close)
        return app

    async def _with_headers(self, _request: web.Request, response: web.StreamResponse) -> None:
        response.headers.update(HEADERS)  # those of aiohttp's own responses as well

    async def _close(self, _app: web.Application) -> None:
        await self.answers.close()

    # --- every request -------------------------------------------------------------------------

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        refusal = self.guard.refusal(
            request.method,
            request.headers,
            cookie=request.cookies.get(self.guard.cookie, ""),
            query=request.query.get(TOKEN, ""),
        )
        if refusal is not None:
            return self._refused(request, refusal)
        connection = self.connections.get(request.protocol)
        with connection.asking() if connection is not None else nullcontext():
            return await self._accepted(request, handler)

    async def _accepted(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return self._with_cookie(request) if TOKEN in request.query else await handler(request)
        except ParameterError as error:
            return self._refused(request, RefusedRequest(400, f"{error}"))
        except web.HTTPNotFound:
            pages = ", ".join(f"/{page.name}" for page in self.pages)
            return self._refused(
                request, RefusedRequest(404, f"There is no such page; pages: {pages}.")
            )
        except (web.HTTPException, ConnectionError):
            raise
        except Exception as error:  # aiohttp's own answer would have no sentence
            sentence = f"not known: {contained('request', request.path, error)}"
            return self._refused(request, RefusedRequest(500, sentence))

    def _refused(self, request: web.Request, refusal: RefusedRequest) -> web.Response:
        if request.path.startswith(f"{API}/"):
            return _json_response({"error": refusal.sentence}, refusal.status)
        html = self.templates.render("refused.html.j2", refusal=refusal)
        return _html_response(html, refusal.status)

    def _with_cookie(self, request: web.Request) -> web.Response:
        """Move the token from the address, which a browser remembers, into a cookie."""
        rest = urlencode([(k, v) for k, v in request.query.items() if k != TOKEN])
        # Of this host, and still quoted: after // and /\\ browsers read the name of another one.
        path = "/" + request.rel_url.raw_path.lstrip("/")
        response = web.Response(status=303)
        response.headers["Location"] = f"{path}?{rest}" if rest else path
        response.set_cookie(
            self.guard.cookie, self.guard.token, httponly=True, samesite="Strict", path="/"
        )
        return response

    # --- pages ---------------------------------------------------------------------------------

    def _page_of(self, request: web.Request) -> Page:
        for page in self.pages:
            if page.name == request.match_info["page"]:
                return page
        raise web.HTTPNotFound

    async def _first(self, _request: web.Request) -> web.StreamResponse:
        return web.Response(status=303, headers={"Location": f"/{self.pages[0].name}"})

    async def _page(self, request: web.Request) -> web.StreamResponse:
        page = self._page_of(request)
        question = page.read(request.query)
        response = web.StreamResponse()
        response.content_type, response.charset = "text/html", "utf-8"
        await response.prepare(request)
        if request.method == "HEAD":
            return response
        values = {"page": page, "pages": self.pages, "where": self.where}
        await response.write(self.templates.render("head.html.j2", **values).encode())
        answered = await self.answers.get(page, question, PATIENCE)
        body = self.fragment(page, question, answered)
        values |= {"query": _query(page, question), "answered": answered}
        values["fragment"] = Markup(body)  # noqa: S704 - made by a template, which escapes
        await response.write(self.templates.render("body.html.j2", **values).encode())
        await response.write_eof()
        return response

    def fragment(self, page: Page, question: Question, answered: Answered) -> str:
        """Return the part of a page that depends on its answer."""
        values = {"page": page, "question": question, "query": _query(page, question)}
        try:
            return self._rendered(values, answered)
        except Exception as error:  # the page is half sent, and others are usable
            problem = f"not known: {contained('template', page.name, error)}"
            return self._rendered(values, Answered(problem=problem))

    def _rendered(self, values: Mapping[str, Any], answered: Answered) -> str:
        answer = answered.value
        return self.templates.render("fragment.html.j2", answered=answered, answer=answer, **values)

    async def _fragment(self, request: web.Request) -> web.StreamResponse:
        page = self._page_of(request)
        query = dict(request.query)
        seen = query.pop(SEEN, "")
        question = page.read(query)
        answered = await self.answers.get(page, question, PATIENCE)
        if answered.computing and answered.version == seen:
            return web.Response(status=204)  # with which htmx leaves the page as it is
        return _html_response(self.fragment(page, question, answered), 200)

    async def _static(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        if name not in STATIC:
            raise web.HTTPNotFound
        content_type = mimetypes.guess_type(name)[0] or "text/plain"
        text = assets.text("bindata", f"console/{name}")
        return web.Response(text=text, content_type=content_type, charset="utf-8")

    # --- live ----------------------------------------------------------------------------------

    async def _events(self, request: web.Request) -> web.StreamResponse:
        page = self._page_of(request)
        if not page.is_live:
            raise web.HTTPNotFound
        query = dict(request.query)
        seen = query.pop(SEEN, "")
        question = page.read(query)
        seen = request.headers.get(SEEN_AGAIN, seen)
        response = web.StreamResponse()
        response.content_type, response.charset = "text/event-stream", "utf-8"
        await response.prepare(request)
        if request.method == "HEAD":
            return response
        try:
            async with asyncio.timeout(None) as end:
                with self._live_place(end):
                    await self._send_changes(response, page, question, seen)
        except TimeoutError:  # it has to make room
            await response.write(f"retry: {1000 * LIVE_TURN}\n\n".encode())
        except ConnectionError:
            pass  # the reader has closed the page
        return response

    @contextmanager
    def _live_place(self, end: asyncio.Timeout) -> Iterator[None]:
        if len(self._live) >= LIVE_PAGES:
            self._live.pop(0).reschedule(asyncio.get_running_loop().time())
        self._live.append(end)
        try:
            yield
        finally:
            if end in self._live:
                self._live.remove(end)

    async def _send_changes(
        self, response: web.StreamResponse, page: Page, question: Question, seen: str
    ) -> None:
        silent_since = time.monotonic()
        while True:
            answered = await self.answers.get(page, question, LIVE_COMMENT)
            if not answered.computing and answered.version != seen:
                lines = self.fragment(page, question, answered).splitlines()
                data = "".join(f"data: {line}\n" for line in lines)
                event = f"event: answer\n{data}id: {answered.version}\n\n"
                await response.write(event.encode())
                seen, silent_since = answered.version, time.monotonic()
            elif time.monotonic() - silent_since >= LIVE_COMMENT:
                await response.write(b": no change\n\n")
                silent_since = time.monotonic()
            await asyncio.sleep(LIVE_INTERVAL)

    # --- JSON ----------------------------------------------------------------------------------

    async def _openapi(self, _request: web.Request) -> web.StreamResponse:
        return _json_response(openapi_document(self.pages), 200)

    async def _json(self, request: web.Request) -> web.StreamResponse:
        page = self._page_of(request)
        question = page.read(request.query)
        answered = await self.answers.get(page, question, page.limit, whole=True)
        if answered.value is None or answered.problem:
            return _json_response({"error": answered.problem or "not known yet"}, 503)
        return _json_response(document_of(answered.value), 200)


def _query(page: Page, question: Question) -> str:
    """Return the query of an address with what differs from the defaults."""
    defaults = {parameter.name: parameter.default for parameter in page.parameters}
    query = urlencode({k: v for k, v in question.items() if v != defaults[k]})
    return f"?{query}" if query else ""


def _html_response(html: str, status: int) -> web.Response:
    return web.Response(text=html, status=status, content_type="text/html", charset="utf-8")


def _json_response(document: Mapping[str, Any], status: int) -> web.Response:
    return web.Response(
        text=json_text(document) + "\n",
        status=status,
        content_type="application/json",
        charset="utf-8",
    )


async def serve(
    cluster: ConsoleCluster, where: str, port: int, started: Callable[[Guard], None]
) -> None:
    """Serve the console on loopback until cancelled; `started` learns the address.

    Raises:
        OSError: the port is in use.
    """
    console = Console(cluster, Guard(port), where)
    async with listening(console.application(), console.connections, port) as chosen:
        console.guard = Guard(chosen)
        started(console.guard)
        await asyncio.Event().wait()
