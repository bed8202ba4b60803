"""The page in a real browser, from a file: drawn, silent, alone, and fitting the screen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.report import chromium
from tests.report.chromium import DESK, PHONE, Page
from tests.report.nights import bad, commits, quiet, tables, trouble
from tests.report.telling import html_of

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        chromium.missing() is not None,
        reason=f"{chromium.missing()}: install chromium and chromium-driver",
    ),
    # selenium leaves closing its connections to the collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SCREENS = [(width, dark) for width in (DESK, PHONE) for dark in (False, True)]


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    with chromium.chromium() as page:
        yield page


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("page") / "bad night.html"
    file.write_text(html_of(bad()))
    return file


@pytest.mark.parametrize(("width", "dark"), SCREENS)
def test_it_opens_alone_and_without_complaint(
    browser: Page, night: Path, width: int, dark: bool
) -> None:
    browser.open(night, width=width, dark=dark)
    assert browser.requests() == [night.as_uri()]
    assert browser.complaints() == []
    assert browser.run("return document.querySelector('h1').innerText").startswith("audit-0 had no")


@pytest.mark.parametrize(("width", "dark"), SCREENS)
def test_it_never_scrolls_sideways(browser: Page, night: Path, width: int, dark: bool) -> None:
    browser.open(night, width=width, dark=dark)
    browser.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert browser.run("return document.documentElement.scrollWidth") == width
    assert browser.run(
        "return [...document.querySelectorAll('main *:not(.picture *)')].filter("
        "(each) => each.getBoundingClientRect().right > innerWidth).map((each) => each.outerHTML)"
    ) == []  # fmt: skip


@pytest.mark.parametrize(("width", "dark"), SCREENS)
def test_pictures_are_drawn_within_their_boxes(
    browser: Page, night: Path, width: int, dark: bool
) -> None:
    browser.open(night, width=width, dark=dark)
    drawn = browser.run(
        "return Object.fromEntries([...document.querySelectorAll('.picture')].map((each) => "
        "[each.id, [each.querySelectorAll('.bars path, .scatterlayer path').length,"
        " each.querySelector('.main-svg').getBoundingClientRect().width - each.clientWidth]]))"
    )
    assert set(drawn) == {"brokers", "curves", "lanes", "churn", "growth", "lag"}
    for marks, excess in drawn.values():
        assert marks > 0
        assert excess <= 1


def test_a_few_things_are_counted_in_whole_numbers(browser: Page, tmp_path: Path) -> None:
    """One partition without a leader, two short of replicas."""
    file = tmp_path / "few.html"
    rows = [trouble("offline", "a-0", 60, 90), trouble("under-replicated", "a-1", 60, 90)]
    rows += [trouble("under-replicated", "a-2", 70, 80)]
    file.write_text(html_of({**quiet(), "health": tables({"health": rows})["health"]}))
    browser.open(file, width=DESK, dark=False)
    marks = browser.run(
        "return [...document.querySelectorAll('#curves .ytick text')]"
        ".map((each) => each.textContent)"
    )
    assert marks == ["0", "1", "2"]


def test_dark_and_light_differ_down_to_the_pictures(browser: Page, night: Path) -> None:
    seen = []
    for dark in (False, True):
        browser.open(night, width=DESK, dark=dark)
        seen.append(
            browser.run(
                "return [getComputedStyle(document.body).backgroundColor,"
                " document.querySelector('#brokers .bars path').style.fill]"
            )
        )
    assert seen[0][0] != seen[1][0]
    assert seen[0][1] != seen[1][1]


def test_changes_can_be_searched_and_narrowed(browser: Page, night: Path) -> None:
    browser.open(night, width=DESK, dark=False)

    def shown(text: str, only: str = "") -> list[str]:
        said: list[str] = browser.run(
            f"document.getElementById('search').value = {json.dumps(text)};"
            f"document.getElementById('only').value = {json.dumps(only)};"
            "document.getElementById('search').dispatchEvent(new Event('input'));"
            "return [...document.querySelectorAll('#lines li:not([hidden]) span')]"
            ".map((each) => each.innerText)"
        )
        return said

    assert len(shown("")) == 7
    assert shown("RETENTION orders") == ["retention.ms of topic orders: 7d -> 1d"]
    assert shown("", "brokers and controllers") == ["broker 3 was fenced"]
    assert shown("no such thing") == []


def test_zooming_one_picture_zooms_the_others(browser: Page, night: Path) -> None:
    browser.open(night, width=DESK, dark=False)
    browser.run(
        "return Plotly.relayout('brokers', {'xaxis.range[0]': '2026-03-01 03:10:00',"
        " 'xaxis.range[1]': '2026-03-01 03:20:00'})"
    )
    ranges = browser.run(
        "return ['brokers', 'curves', 'lanes', 'churn', 'lag'].map("
        "(each) => document.getElementById(each).layout.xaxis.range.join(' '))"
    )
    assert len(set(ranges)) == 1
    assert "03:10:00" in ranges[0]


def test_hostile_names_do_nothing(browser: Page, tmp_path: Path) -> None:
    name = "<img src=x onerror='document.title=1'><b>bold"
    rows = {"group_offsets": commits(name, "t", (60, 1, 5), (90, 2, 7))}
    file = tmp_path / "hostile.html"
    file.write_text(html_of({**quiet(), "group_offsets": tables(rows)["group_offsets"]}))
    browser.open(file, width=DESK, dark=False)
    assert browser.complaints() == []
    assert browser.run("return document.title") != "1"
    assert browser.run("return document.querySelector('#groups td').innerText").startswith(name)
    assert browser.run("return document.querySelectorAll('img').length") == 0


def test_a_page_without_trouble_opens_too(browser: Page, tmp_path: Path) -> None:
    file = tmp_path / "quiet.html"
    file.write_text(html_of(quiet()))
    browser.open(file, width=PHONE, dark=True)
    assert browser.complaints() == []
    assert browser.run("return document.querySelector('h1').innerText") == "Nothing was wrong"
    assert browser.run("return document.documentElement.scrollWidth") == PHONE
