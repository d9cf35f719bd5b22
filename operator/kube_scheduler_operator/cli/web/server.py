"""The server of the console.

A page comes in two parts: its head at once, and the rest when its answer is known, or after
PATIENCE seconds with what is known then. With JavaScript, htmx replaces that rest: when the answer
of a slow question is there, and on live pages whenever it changes. Without, a link reloads.
"""

from __future__ import annotations

import asyncio
import mimetypes
import socket
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

from aiohttp import web
from markupsafe import Markup

from ...base import assets
from ...base.defects import contained
from ...base.field_types import document_of
from ...base.foreign_text import json_text
from .answers import Answered, Answers
from .openapi import API, openapi_document
from .page import ConsoleCluster, Page, ParameterError, Question
from .registry import PAGES
from .rendering import Templates, identity_flags
from .security import HEADERS, TOKEN, Guard, RefusedRequest

PATIENCE: Final = 4.0
"""Seconds that a page waits for its answer."""

LIVE_INTERVAL: Final = 2.0
LIVE_COMMENT: Final = 15.0
"""Seconds between two looks of a live page, and between two signs of life without a change."""

LIVE_PAGES: Final = 16
"""Live pages at the same time: each keeps one connection."""

SEEN: Final = "seen"
"""The parameter of a live page with the version that it shows."""

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
    live: int = 0  # live pages now

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
        app.on_cleanup.append(self._close)
        return app

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
        if TOKEN in request.query:
            return self._with_cookie(request)
        try:
            response = await handler(request)
        except ParameterError as error:
            return self._refused(request, RefusedRequest(400, f"{error}"))
        except web.HTTPNotFound:
            pages = ", ".join(f"/{page.name}" for page in self.pages)
            return self._refused(
                request, RefusedRequest(404, f"There is no such page; pages: {pages}.")
            )
        except (web.HTTPException, ConnectionError):
            raise
        except Exception as error:  # aiohttp's own answer would have none of the headers
            sentence = f"not known: {contained('request', request.path, error)}"
            return self._refused(request, RefusedRequest(500, sentence))
        if not response.prepared:
            response.headers.update(HEADERS)
        return response

    def _refused(self, request: web.Request, refusal: RefusedRequest) -> web.Response:
        if request.path.startswith(f"{API}/"):
            return _json_response({"error": refusal.sentence}, refusal.status)
        html = self.templates.render("refused.html.j2", refusal=refusal)
        return _html_response(html, refusal.status)

    def _with_cookie(self, request: web.Request) -> web.Response:
        """Move the token from the address, which a browser remembers, into a cookie."""
        rest = urlencode([(k, v) for k, v in request.query.items() if k != TOKEN])
        # Relative to this host: a path that begins with // would name another one.
        path = "/" + request.path.lstrip("/")
        response = web.Response(status=303, headers=HEADERS)
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
        response = web.StreamResponse(headers=HEADERS)
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
        question = page.read(request.query)
        answered = await self.answers.get(page, question, PATIENCE)
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
        if self.live >= LIVE_PAGES:
            sentence = f"{LIVE_PAGES} live pages are open; close one."
            return self._refused(request, RefusedRequest(503, sentence))
        response = web.StreamResponse(headers=HEADERS)
        response.content_type, response.charset = "text/event-stream", "utf-8"
        await response.prepare(request)
        if request.method == "HEAD":
            return response
        self.live += 1
        try:
            await self._send_changes(response, page, question, seen)
        except ConnectionError:
            pass  # the reader has closed the page
        finally:
            self.live -= 1
        return response

    async def _send_changes(
        self, response: web.StreamResponse, page: Page, question: Question, seen: str
    ) -> None:
        silent_since = time.monotonic()
        while True:
            answered = await self.answers.get(page, question, LIVE_COMMENT)
            if not answered.computing and answered.version != seen:
                lines = self.fragment(page, question, answered).splitlines()
                data = "".join(f"data: {line}\n" for line in lines)
                await response.write(f"event: answer\n{data}\n".encode())
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
        answered = await self.answers.get(page, question, page.limit)
        if answered.value is None or answered.problem:
            return _json_response({"error": answered.problem or "not known yet"}, 503)
        return _json_response(document_of(answered.value), 200)


def _query(page: Page, question: Question) -> str:
    """Return the query of an address with what differs from the defaults."""
    defaults = {parameter.name: parameter.default for parameter in page.parameters}
    query = urlencode({k: v for k, v in question.items() if v != defaults[k]})
    return f"?{query}" if query else ""


def _html_response(html: str, status: int) -> web.Response:
    return web.Response(
        text=html, status=status, headers=HEADERS, content_type="text/html", charset="utf-8"
    )


def _json_response(document: Mapping[str, Any], status: int) -> web.Response:
    return web.Response(
        text=json_text(document) + "\n",
        status=status,
        headers=HEADERS,
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
    with socket.create_server(("127.0.0.1", port)) as listening:
        guard = Guard(listening.getsockname()[1])
        console = Console(cluster, guard, where)
        runner = web.AppRunner(
            console.application(), access_log=None, handle_signals=False, shutdown_timeout=1
        )
        await runner.setup()
        try:
            await web.SockSite(runner, listening).start()
            started(guard)
            await asyncio.Event().wait()
        finally:
            await runner.cleanup()
