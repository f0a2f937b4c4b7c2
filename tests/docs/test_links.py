"""Every link of the site leads somewhere, every picture is there, and nothing is elsewhere."""

import pytest

from tests.docs.site import OWN, SITE, pages, target

pytestmark = pytest.mark.docs


def broken(links):
    """Return the links (page, link) that lead to no file of the site, or to no anchor."""
    found = []
    for page, link in links:
        end = target(page, link)
        if end is None:
            continue
        path, anchor = end
        lost = anchor and path in pages() and anchor not in pages()[path].anchors
        if lost or not (SITE / path).is_file():
            found.append(f"{page}: {link}")
    return found


def test_every_link_leads_to_a_page_and_an_anchor():
    links = {(page, link) for page, seen in pages().items() for link in seen.links}
    assert len(links) > 1000
    assert not broken(links)


@pytest.mark.parametrize("link", ["nowhere.html", "which.html#nowhere", "../outside.html"])
def test_a_broken_link_is_seen(link):
    assert broken([("index.html", link)]) == [f"index.html: {link}"]


def test_every_picture_is_there_and_described():
    pictures = {(page, *one) for page, seen in pages().items() for one in seen.pictures}
    assert len(pictures) > 40
    assert not broken([(page, source) for page, source, _ in pictures])
    assert not [(page, source) for page, source, alt in pictures if len(alt.strip()) < 4]
    assert not [(page, alt) for page, _, alt in pictures if alt.endswith(".png")]


def test_nothing_is_loaded_from_elsewhere():
    loaded = {(page, source) for page, seen in pages().items() for source in seen.loaded}
    assert loaded
    assert not [one for one in loaded if target(*one) is None]
    assert not broken(loaded)


def test_every_page_is_reached_from_the_first():
    linked, ahead = {"index.html"}, ["index.html"]
    while ahead:
        page = ahead.pop()
        ends = {end[0] for link in pages()[page].links if (end := target(page, link))}
        new = (ends & set(pages())) - linked
        linked |= new
        ahead += new
    assert set(pages()) - linked <= set(OWN)
