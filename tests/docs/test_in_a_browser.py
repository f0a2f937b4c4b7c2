"""The site as a reader sees it: twelve pages, wide and narrow, light and dark; search and math."""

import functools
import http.server
import threading

import pytest

from tests import browser
from tests.docs.site import SITE, pages

pytestmark = [
    pytest.mark.docs,
    pytest.mark.skipif(browser.found() is None, reason="there is no Chromium"),
]

TWELVE = (
    "index",
    "which",
    "tutorials/index",
    "tutorials/03_when_approximations_lie",
    "howto/own-draws",
    "models/rfvm",
    "methods/nuts",
    "report",
    "results/matrix",
    "results/paper_check",
    "api/ardvark.compare",
    "glossary",
)
MODES = {
    "wide, light": (1400, False),
    "wide, dark": (1400, True),
    "narrow, light": (400, False),
    "narrow, dark": (400, True),
}
LOST = "[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"
WIDTH = "Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)"
# the sum of the channels of the background behind the text
LIGHT = """
    getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).slice(0, 3)
    .reduce((sum, x) => sum + Number(x), 0)
"""


@pytest.mark.parametrize("mode", MODES)
def test_twelve_pages(mode, tmp_path):
    width, dark = MODES[mode]
    pages()  # says how to build the site where there is none
    with browser.Page(tmp_path / "profile", width, 900, dark) as page:
        for name in TWELVE:
            page.open(SITE / f"{name}.html")
            assert page.value(LOST) == [], name
            assert page.value(WIDTH) <= width, f"{name} is wider than the window"
            assert (page.value(LIGHT) < 382) == dark, f"{name} is not {mode}"
            assert not page.complaints, name
        local = (SITE.as_uri(), "data:", "blob:")
        assert not [request for request in page.requests if not request.startswith(local)]


# how far a slide reaches below the place that it is scaled to
BELOW = """
    Math.max(...[...document.querySelectorAll('.slides section')].map(s => {
        s.style.display = 'block';
        return s.scrollHeight - Reveal.getConfig().height;
    }))
"""


def test_the_slides(tmp_path):
    pages()
    with browser.Page(tmp_path / "profile", 1200, 800) as page:
        page.open(SITE / "slides" / "talk.html")
        assert page.until("window.Reveal && Reveal.isReady() && Reveal.getTotalSlides()") == 12
        assert page.value(LOST) == []
        assert page.value(BELOW) <= 0
        assert not page.complaints
        local = (SITE.as_uri(), "data:", "blob:")
        assert not [request for request in page.requests if not request.startswith(local)]


def test_math_is_drawn(tmp_path):
    with browser.Page(tmp_path / "profile", 400) as page:
        for name in ("tutorials/01_sparsity", "models/rfvm"):
            page.open(SITE / f"{name}.html")
            assert page.until("document.querySelectorAll('mjx-container svg').length") > 5
            assert page.value("document.querySelectorAll('mjx-merror').length") == 0
            assert page.value(WIDTH) <= 400
        assert not page.complaints


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server that says nothing."""

    def log_message(self, format, *args):
        """Say nothing."""


@pytest.fixture
def address():
    handler = functools.partial(Quiet, directory=SITE)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


FOUND = "[...document.querySelectorAll('#search-results li a')].map(a => a.pathname)"
SEARCHES = {
    "cluster": "howto/cluster",
    "target_accept": "methods/nuts",
    "missing values": "howto/missing-values",
    "slab": "glossary",
    "sensitivity": "api/ardvark.sensitivity",
}


def test_search_finds_pages(address, tmp_path):
    with browser.Page(tmp_path / "profile", 1400) as page:
        for words, name in SEARCHES.items():
            page.open(f"{address}/search.html?q={words.replace(' ', '+')}")
            page.until("document.querySelector('.search-summary')?.textContent.includes('found')")
            assert f"/{name}.html" in page.value(FOUND), words
        page.open(f"{address}/search.html?q=zzyzx")
        page.until("document.querySelector('.search-summary')?.textContent.includes('did not')")
        assert page.value(FOUND) == []
        assert not page.complaints
        assert not [r for r in page.requests if not r.startswith((address, "data:", "blob:"))]
