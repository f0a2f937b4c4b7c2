"""The page: whole, self-contained, readable by everybody; in a browser too where there is one."""

from html.parser import HTMLParser

import pandas as pd
import pytest

import ardvark as av
from ardvark.inference.comparison.report.figures import FIGURES
from ardvark.inference.comparison.report.page import PARTS
from ardvark.inference.comparison.report.page import page as whole
from tests import browser
from tests.made import arrays_of, made_fit, problem_of, split

VOID = {"meta", "img", "br", "hr", "input", "link"}
SHAPE = (4, 250)


class Reader(HTMLParser):
    """Reads a page: its elements, and whether each is closed where it must be."""

    def __init__(self):
        super().__init__()
        self.elements, self.open, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs), tuple(self.open)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append((self.open[-1] if self.open else "", data))

    def all(self, tag):
        return [attrs for name, attrs, _ in self.elements if name == tag]


def read(page):
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert not reader.open
    return reader


@pytest.fixture(scope="module")
def comparison():
    """Of two methods, one with a name that must be escaped."""
    train, test = split("<small> & odd")
    problem = problem_of(train)
    wide = made_fit(problem, arrays_of(problem, 2, scale=2.0), "advi", "approximation")
    fits = {"exact": made_fit(problem, arrays_of(problem, 1)), "q<b>&": wide}
    return av.compare(fits, problem=problem, test=test)


@pytest.fixture(scope="module")
def pictures(comparison):
    return comparison.pictures()


@pytest.fixture(scope="module")
def file(comparison, pictures, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    return comparison.to_html(path, "ardvark compare <x> & y", pictures=pictures)


@pytest.fixture(scope="module")
def page(file):
    return file.read_text()


def test_the_page_is_well_formed_and_in_order(page):
    reader = read(page)
    headings = [t for tag, t in reader.text if tag == "h2"]
    assert headings == [
        "What the features do", "How far each fit is from the exact posterior", "Scorecard",
        "Samples and chains", "The problem", "For a methods section",
    ]  # fmt: skip
    assert {m["name"]: m["content"] for m in reader.all("meta") if "name" in m} == {
        "viewport": "width=device-width, initial-scale=1", "color-scheme": "light dark",
    }  # fmt: skip
    assert "<small> & odd" in "".join(t for tag, t in reader.text if tag == "h1")
    assert "q<b>" not in page
    folded = [t for tag, t in reader.text if tag == "summary"]
    assert folded[0] == "What each rule selects, by each method"
    assert folded[-4:] == [
        "How to read the table", "Every distance from the reference, with its noise floor",
        "The model", "How this was made",
    ]  # fmt: skip
    for media in ("prefers-color-scheme: dark", "@media print"):
        assert media in page


def test_nothing_of_the_page_is_elsewhere(page):
    reader = read(page)
    for tag, attrs, _ in reader.elements:
        assert tag not in ("script", "link", "iframe", "object", "base")
        for name in ("src", "href", "srcset", "data", "xlink:href", "action", "background"):
            assert attrs.get(name, "data:").startswith("data:")
        assert not any(name.startswith("on") for name in attrs)
    style = "".join(t for tag, t in reader.text if tag == "style")
    assert "url(" not in style
    assert "@import" not in style


def test_pictures_and_tables_can_be_read_aloud(page, pictures):
    reader = read(page)
    drawn = [k for part in PARTS for k in part if k in pictures]
    assert {k for part in PARTS for k in part} == set(FIGURES)
    assert set(FIGURES) - set(drawn) == {"variables"}  # of a model of one's own
    assert [a["alt"] for a in reader.all("img")] == [pictures[k].alt for k in drawn]
    found = [t for tag, t in reader.text if tag == "h3"]  # text of the page: it wraps
    shown = [pictures[k] for k in drawn]
    titles = [" ".join(p.figure.get_suptitle().split()) for p in shown]
    subject = "rfvm on <small> & odd: "
    assert [f"{subject}{t[:1].lower()}{t[1:]}".lower() for t in found] == [
        t.lower() for t in titles
    ]
    for picture in pictures.values():
        assert len(picture.alt) > 60  # what it shows, not what it is
        assert "exact" in picture.alt
        assert "nan" not in picture.alt
    for attrs in reader.all("th"):
        assert attrs.get("scope") in ("row", "col", "rowgroup")
    sections = [dict(a) for a in reader.all("th") if a["scope"] == "rowgroup"]
    assert len(sections) == 5


@pytest.mark.parametrize(("methods", "css"), [(4, "long"), (5, "long wide")])
def test_three_tables_of_at_most_four_methods_fit_side_by_side(comparison, methods, css):
    one = comparison.distances.query("fit == 'q<b>&'")
    distances = pd.concat([one.assign(fit=f"m{k}") for k in range(methods)])
    text = whole(comparison.table, comparison.printed, {}, distances=distances)
    assert [a["class"] for a in read(text).all("div") if "long" in a.get("class", "")] == [css]


def test_numbers_under_the_pointer(page, comparison):
    """Each cell of the scorecard, and each mark of a figure, says what it is."""
    reader = read(page)
    accuracy = float(comparison.table.loc["exact", "accuracy"])
    assert f"exact, accuracy: {accuracy:.6g}" in [a.get("title") for a in reader.all("td")]
    frame = comparison.distances.set_index(["fit", "quantity", "statistic"])
    value = frame.loc[("q<b>&", "eta", "sd_ratio"), "value"]
    assert f"q<b>&, sd ratio of eta: {value:.6g}" in [a.get("title") for a in reader.all("td")]
    told = {a.get("title") for a in reader.all("td")}
    known = comparison.distances.dropna(subset=["value", "floor"])
    inside = known["deviation"] <= known["floor"]
    assert inside.any()
    assert not inside.all()
    for r, within in zip(known.itertuples(), inside, strict=True):
        beside = "= floor" if within else f"({r.floor:.2g})"
        assert f"{r.fit}, {r.quantity} {r.statistic}: {r.value:.3g} {beside}" in told
    marks = [t for tag, t in reader.text if tag == "title"]
    effect = av.effects(comparison.fits["exact"])["effect"]
    assert any(m.startswith(f"a, exact: mean {effect['a']:.3g}, ") for m in marks)
    for circle in reader.all("circle"):
        assert 0 <= float(circle["cx"]) <= 1000


def test_the_page_is_small(file):
    assert file.stat().st_size < 3e6


def test_a_comparison_in_a_notebook_is_in_a_box(comparison):
    """Its style must not reach the rest of the notebook."""
    text = comparison._repr_html_()
    reader = read(text)
    style = "".join(t for tag, t in reader.text if tag == "style")
    selectors = [line.split("{")[0].strip() for line in style.splitlines() if "{" in line]
    assert all(s.startswith((".ardvark", "@media")) for s in selectors)
    assert reader.all("img") == []


needs_browser = pytest.mark.skipif(
    browser.found() is None,
    reason=f"no Chromium is installed ({', '.join(browser.NAMES)}): apt-get install chromium",
)


@needs_browser
def test_a_telephone_shows_the_page(file, tmp_path):
    """400 pixels wide: nothing sticks out, no complaint, and no request but for the page itself."""
    with browser.Page(tmp_path / "profile", width=400) as page:
        page.open(file)
        wide = page.value("document.documentElement.scrollWidth")
        assert page.value("window.innerWidth") == wide == 400
        assert page.value("[...document.images].every(i => i.complete && i.naturalWidth > 500)")
        # unfolded, it still fits
        page.value("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert page.value("document.documentElement.scrollWidth") == 400
        assert page.value("getComputedStyle(document.body).fontSize") == "16px"
        # wide tables scroll by themselves, and their first column leaves room for a number
        assert page.value("document.querySelector('.scroll').clientWidth") <= 400
        assert page.value("document.querySelector('tbody th[scope=row]').clientWidth") < 200
        outside = [r for r in page.requests if not r.startswith(("file:", "data:"))]
        assert outside == []
        assert [r for r in page.requests if r.startswith("file:")] == [file.resolve().as_uri()]
        assert page.complaints == []


@needs_browser
def test_the_dark_page_is_dark(file, tmp_path):
    colour = "getComputedStyle(document.body).{}.match(/\\d+/g).slice(0, 3).map(Number)"
    with browser.Page(tmp_path / "profile", dark=True) as page:
        page.open(file)
        paper, ink = (page.value(colour.format(c)) for c in ("backgroundColor", "color"))
        assert max(paper) < 50
        assert min(ink) > 200
        # figures are drawn on white: they are turned over, and keep their hues
        filters = page.value("[...document.images].map(i => getComputedStyle(i).filter)")
        assert filters
        assert all(f.startswith("invert(") and "hue-rotate" in f for f in filters)
        page.ask("Emulation.setEmulatedMedia", media="print")
        assert set(page.value("[...document.images].map(i => getComputedStyle(i).filter)")) == {
            "none"
        }


@needs_browser
def test_on_paper_a_figure_is_on_one_page_with_its_legend(file, tmp_path):
    """Two side by side, none taller than half a page; what was folded is printed."""
    with browser.Page(tmp_path / "profile", width=1060) as page:
        page.open(file)
        page.ask("Emulation.setEmulatedMedia", media="print")
        heights = page.value("[...document.images].map(i => i.getBoundingClientRect().height)")
        assert 0 < max(heights) < 96 * 96 / 25.4 + 1
        lefts = page.value(
            "[...document.querySelectorAll('figure')].map(f => f.getBoundingClientRect().left)"
        )
        assert len(set(lefts)) == 2
        inside = (
            "[...document.querySelectorAll('figure')].map(f => getComputedStyle(f).breakInside)"
        )
        assert set(page.value(inside)) == {"avoid"}
        hidden = "getComputedStyle(document.querySelector('.picture svg')).display"
        assert page.value(hidden) == "none"
        assert page.pages(tmp_path / "page.pdf") <= 7


@pytest.mark.slow
@needs_browser
def test_the_demo_has_eight_pages_on_paper(command, tmp_path):
    words = ("rfvm", "digits38", "--test-size", "0.3", "--out", tmp_path / "demo")
    assert command("compare", *words).returncode == 0
    with browser.Page(tmp_path / "profile", width=1060) as page:
        page.open(tmp_path / "demo" / "report.html")
        assert page.pages(tmp_path / "demo.pdf") <= 8


@needs_browser
def test_the_browser_sees_what_is_wrong(tmp_path):
    """A page that sticks out, asks for something elsewhere and throws."""
    bad = tmp_path / "bad.html"
    bad.write_text(
        '<meta name="viewport" content="width=device-width"><img src="http://127.0.0.1:9/x.png">'
        '<div style="width: 900px">x</div><script>console.error("no"); throw Error("so")</script>'
    )
    with browser.Page(tmp_path / "profile", width=400) as page:
        page.open(bad)
        assert page.value("document.documentElement.scrollWidth") >= 900
        assert "http://127.0.0.1:9/x.png" in page.requests
        assert len(page.complaints) >= 2
