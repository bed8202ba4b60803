"""The page as a file: whole in itself, safe with any name, sensible with little or much data."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import plotly.graph_objects as go
import pytest

from kraftline.report import charts
from kraftline.report.charts import Json
from kraftline.report.page import GROUPS, group_of
from tests.report.nights import CLUSTER, bad, change, commits, quiet, tables, trouble
from tests.report.telling import found_in, html_of

HOSTILE = "</script><img src=x onerror=alert(1)>"


class Outline(HTMLParser):
    """Headings, ids and what elements point to."""

    def __init__(self) -> None:
        super().__init__()
        self.headings: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.pictures: dict[str, str] = {}
        self.images = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if re.fullmatch(r"h\d", tag):
            self.headings.append(tag)
        if "id" in given:
            self.ids.append(given["id"])
        self.links += [given[name] for name in ("href", "src") if name in given]
        self.images += tag == "img"
        if given.get("role") == "img":
            self.pictures[given["id"]] = given["aria-label"]


def outline(html: str) -> Outline:
    parsed = Outline()
    parsed.feed(html)
    return parsed


def test_it_points_nowhere_outside() -> None:
    parsed = outline(html_of(bad()))
    assert all(link.startswith(("#", "data:")) for link in parsed.links)
    assert {link[1:] for link in parsed.links if link.startswith("#")} <= set(parsed.ids)
    assert len(parsed.ids) == len(set(parsed.ids))


def test_it_is_small_enough_to_mail() -> None:
    assert len(html_of(bad()).encode()) < 2_500_000


def test_the_top_says_what_happened_and_that_times_are_utc() -> None:
    html = html_of(bad())
    top = html[html.index("<header") : html.index("</header>")]
    assert "audit-0 had no leader for 10 min" in top
    assert "At the end all is well" in top
    assert "2026-03-01 03:00:00 to 2026-03-01 04:00:00 UTC" in top
    assert CLUSTER in top


def test_every_picture_says_what_it_shows() -> None:
    parsed = outline(html_of(bad()))
    assert set(parsed.pictures) == {"brokers", "curves", "lanes", "churn", "growth", "lag"}
    assert all(parsed.pictures.values())
    assert parsed.headings[0] == "h1"
    assert parsed.headings.count("h1") == 1


def test_a_quiet_night_has_a_page_without_empty_pictures() -> None:
    html = html_of(quiet())
    assert set(outline(html).pictures) == {"brokers"}
    for said in (
        "Nothing was wrong",
        "Every partition had a leader and all its replicas, all the time.",
        "Nothing was changed.",
        "No topic segments are among the data.",
        "Everything that was given could be read.",
    ):
        assert said in html


def test_names_are_never_markup() -> None:
    rows = {
        "group_offsets": commits(HOSTILE, "t", (60, 1, 5), (90, 2, 7)),
        "changes": [change(60, "config.set", "topic t", f"x of topic t set to {HOSTILE}")],
        "health": [trouble("offline", f"{HOSTILE}-0", 60, 120)],
    }
    night = {**quiet(), **{name: tables(rows)[name] for name in rows}}
    html = html_of(night)
    assert HOSTILE not in html
    assert outline(html).images == 0


def plain(value: Json) -> Json:
    """A figure with a colour where the page will put one."""
    if isinstance(value, str):
        return "#123456" if value.startswith("@") else value
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return value


def test_figures_are_what_plotly_knows() -> None:
    found = found_in(bad())
    for figure in (
        charts.broker_lanes(found.brokers, found.window),
        charts.trouble_curves(found.troubles, found.window),
        charts.trouble_lanes(found.troubles, found.window),
        charts.churn_bars(found.churn, found.window),
        charts.growth_bars(found.topics, found.window),
        charts.lag_lines(found.groups, found.window),
    ):
        go.Figure(plain(figure))  # raises where a property is not known
        assert figure["data"]


def test_colours_of_figures_are_colours_of_the_page() -> None:
    html = html_of(bad())
    named = set(re.findall(r'"@([\w-]+)"', html))
    style = html[html.index("<style>") : html.index("</style>")]
    light, dark = style.split("@media (prefers-color-scheme: dark)")
    for name in named:
        assert f"--{name}:" in light
        assert f"--{name}:" in dark


@pytest.mark.parametrize(
    ("kind", "group"),
    [
        ("broker.fenced", "brokers and controllers"),
        ("isr.shrank", "leaders and replicas"),
        ("config.set", "topics and configs"),
        ("scram.set", "access and quotas"),
        ("transaction.open", "other"),
    ],
)
def test_changes_can_be_narrowed_to_what_they_are_about(kind: str, group: str) -> None:
    assert group_of(kind) == group
    assert group in [*GROUPS, "other"]
