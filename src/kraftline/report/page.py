"""One self-contained page: template, style, script, figures and the chart library in one file.

plotly.js is carried compressed (2 MB instead of 4.8) and unpacked by the browser; what is said in
words and tables is there without it.
"""

from __future__ import annotations

import base64
import gzip
from datetime import datetime
from functools import cache
from importlib.resources import files

import jinja2
import msgspec
from markupsafe import Markup
from msgspec import Struct

from kraftline import __version__
from kraftline.metadata.words.values import plural
from kraftline.report import charts
from kraftline.report.charts import TROUBLE_NAMES, Figure
from kraftline.report.findings import Findings
from kraftline.report.numbers import short_bytes
from kraftline.report.summary import FINE, Summary
from kraftline.report.window import Clock, length

# What the list of changes can be narrowed to, and the kinds that belong to it.
GROUPS = {
    "brokers and controllers": ("broker.", "controller.", "voters.", "feature.", "directory."),
    "leaders and replicas": ("leader.", "isr.", "elr.", "reassignment.", "replicas."),
    "topics and configs": ("topic.", "partitions.", "config."),
    "access and quotas": ("acl.", "scram.", "quota.", "token."),
}
OTHER = "other"


class Member(Struct, frozen=True):
    """One of many clusters in a lake, in a line."""

    cluster: str
    said: Summary
    is_shown: bool

    @property
    def is_well(self) -> bool:
        """Nothing was wrong, and nothing is."""
        return self.said.level == self.said.now_level == FINE


class Silent(Struct, frozen=True):
    """A cluster of which nothing is known at that time; `unread` is how many places of its files
    could not be read."""

    cluster: str
    unread: int

    @property
    def sentence(self) -> str:
        why = "no metadata of it was read, or none of that time"
        if self.unread:
            why = f"{plural(self.unread, 'place')} in its files could not be read"
        return f"Nothing is known of cluster {self.cluster}: {why}."


class Made(Struct, frozen=True):
    """Where a page comes from, and what of it there was nothing to tell of."""

    lake: str
    at: datetime
    silent: list[Silent] = []


def page(found: Findings, said: Summary, fleet: list[Member], made: Made) -> str:
    """The page of one cluster; `fleet` has a line for each where the lake has several."""
    clock = Clock(found.window)
    figures = _figures(found)
    return _template("page.html").render(
        found=found,
        said=said,
        fleet=fleet,
        made=made,
        clock=clock,
        figures={name: msgspec.json.encode(each).decode() for name, each in figures.items()},
        legends={name: charts.legend(figure) for name, figure in figures.items()},
        groups=[*GROUPS, OTHER],
        trouble_names=TROUBLE_NAMES,
        plotly=_packed_plotly() if figures else "",
    )


def empty_page(lake: str, made: Made) -> str:
    """A lake of which there is nothing to tell."""
    unread = any(each.unread for each in made.silent)
    return _template("empty.html").render(lake=lake, made=made, unread=unread)


def _figures(found: Findings) -> dict[str, Figure]:
    """Those that have something to show."""
    window = found.window
    figures = {}
    if found.brokers.lanes:
        figures["brokers"] = charts.broker_lanes(found.brokers, window)
    if found.troubles.lanes:
        figures["curves"] = charts.trouble_curves(found.troubles, window)
        figures["lanes"] = charts.trouble_lanes(found.troubles, window)
    if any(found.churn.totals.values()):
        figures["churn"] = charts.churn_bars(found.churn, window)
    if found.topics.growing:
        figures["growth"] = charts.growth_bars(found.topics, window)
    if any(lag.curve for lag in found.groups.lagging):
        figures["lag"] = charts.lag_lines(found.groups, window)
    return figures


def group_of(kind: str) -> str:
    return next((name for name, starts in GROUPS.items() if kind.startswith(starts)), OTHER)


@cache
def _template(name: str) -> jinja2.Template:
    here = files("kraftline.report")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: (here / name).read_text("utf-8")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "bytes": short_bytes,
        "group": group_of,
        "duration": length,
        "plural": plural,
        "script": _script,
    }
    environment.globals |= {
        "style": Markup((here / "page.css").read_text("utf-8")),
        "program": Markup((here / "page.js").read_text("utf-8")),
        "version": __version__,
    }
    return environment.get_template(name)


def _script(json: str) -> Markup:
    """JSON inside a script element: nothing in it may end that element."""
    return Markup(json.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


@cache
def _packed_plotly() -> str:
    from plotly.offline import get_plotlyjs

    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), mtime=0)).decode()
