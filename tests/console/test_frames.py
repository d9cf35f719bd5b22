"""What a page of another origin gets of the console, in the browser of its reader."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser

from ..browser import window
from .conftest import served
from .states import STATES

pytestmark = pytest.mark.timeout(180)

EMBEDDED = (
    '<iframe src="{page}"></iframe>',
    '<object data="{page}" type="text/html"></object>',
    '<embed src="{page}" type="text/html">',
)
READS = """async address => {
  try { return (await (await fetch(address, {credentials: 'include'})).text()).slice(0, 200); }
  catch (error) { return 'refused'; }
}"""


@contextmanager
def another_origin(html: str) -> Iterator[str]:
    """The address of a page on another port of this host: cookies do not know ports."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = html.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("element", EMBEDDED)
def test_no_other_page_embeds_the_console(browser: Browser, element: str) -> None:
    with served(STATES["healthy"]) as address:
        place = urlsplit(address)
        page_of_console = f"{place.scheme}://{place.netloc}/now"
        with another_origin(element.format(page=page_of_console)) as other:
            context = browser.new_context()
            page = context.new_page()
            page.goto(address)  # its reader has the cookie
            assert "Healthy" in page.content()
            page.goto(other)
            page.wait_for_timeout(500)
            shown = [frame.content() for frame in page.frames[1:]]
            assert not any("Healthy" in content for content in shown)
            context.close()


def test_no_other_page_reads_the_console(consoles: Mapping[str, str], browser: Browser) -> None:
    place = urlsplit(consoles["healthy"])
    with another_origin("<title>another page</title>") as other, window(browser) as page:
        page.goto(consoles["healthy"])
        own = page.evaluate(READS, "/api/v1/now")
        assert "profile" in own
        context = page.context
        stranger = context.new_page()  # what it reports as errors is expected
        stranger.goto(other)
        for path in ("now", "api/v1/now", "events/now", "static/console.css"):
            assert stranger.evaluate(READS, f"{place.scheme}://{place.netloc}/{path}") == "refused"
