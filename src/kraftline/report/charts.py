"""Findings as figures of plotly.js: plain data, in colours that the page knows by name.

`@lost` is the page's colour `--lost`, light or dark: the page puts it in when it draws. All figures
with time along the bottom have the same margins, so that one moment is in one place.
"""

from __future__ import annotations

import html
from typing import TypeAlias

from kraftline.inspect.cluster import health as kinds
from kraftline.metadata.words.values import plural
from kraftline.report import brokers as states
from kraftline.report.brokers import Brokers
from kraftline.report.churn import Churn
from kraftline.report.groups import Groups
from kraftline.report.numbers import short_bytes
from kraftline.report.topics import Topics
from kraftline.report.troubles import CURVES, KINDS, Troubles
from kraftline.report.window import Clock, Window, length, moment

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Figure: TypeAlias = "dict[str, Json]"

STATE_COLOURS = {
    states.UP: "@up",
    states.STARTING: "@starting",
    states.LEAVING: "@leaving",
    states.SHUT: "@shut",
    states.LOST: "@lost",
}
TROUBLE_COLOURS = {
    kinds.OFFLINE: "@offline",
    kinds.UNDER_MIN_ISR: "@undermin",
    kinds.RECOVERING_STATE: "@unclean",
    kinds.UNDER_REPLICATED: "@under",
    kinds.REASSIGNING: "@moving",
}
TROUBLE_NAMES = {
    kinds.OFFLINE: "no leader",
    kinds.UNDER_MIN_ISR: "below min.insync.replicas",
    kinds.RECOVERING_STATE: "recovering from an unclean election",
    kinds.UNDER_REPLICATED: "under-replicated",
    kinds.REASSIGNING: "being reassigned",
}
_BAR_COLOURS = ("@moved", "@offline", "@unclean", "@under", "@up")
_LINE_COLOURS = tuple(f"@line{number}" for number in range(1, 9))
_LANE = 30
_FRAME = 46  # above and below the lanes
_LABEL = 16  # characters
_MARKS = 5  # beside an axis, about
_NARROW = 500  # lines of less than 1/500 of the picture are drawn as wide as that


def broker_lanes(found: Brokers, window: Window) -> Figure:
    clock = Clock(window)
    traces: list[Json] = []
    names = {number: f"broker {number}" for number in found.lanes}
    for state in states.STATES:
        bars = [
            (names[number], each.start, each.end, clock.since(each.start, each.end, each.ongoing))
            for number, lane in found.lanes.items()
            for each in lane
            if each.state == state
        ]
        if bars:
            traces.append(_lane_trace(state, STATE_COLOURS[state], bars, window))
    return _lanes(traces, list(names.values()), window)


def trouble_lanes(found: Troubles, window: Window) -> Figure:
    clock = Clock(window)
    traces: list[Json] = []
    # The worst is drawn over the others.
    for kind in reversed(KINDS):
        bars = [
            (lane.name, start, end, clock.since(start, end, end >= window.end))
            for lane in found.lanes
            for start, end in lane.stretches.get(kind, ())
        ]
        if bars:
            traces.append(_lane_trace(TROUBLE_NAMES[kind], TROUBLE_COLOURS[kind], bars, window))
    return _lanes(traces, [lane.name for lane in found.lanes], window)


def _lane_trace(
    name: str, colour: str, bars: list[tuple[str, int, int, str]], window: Window
) -> Json:
    least = window.length / _NARROW / 1000
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "y": [_plain(label) for label, _, _, _ in bars],
        "base": [_time(start) for _, start, _, _ in bars],
        "x": [max((end - start) / 1000, least) for _, start, end, _ in bars],
        "hovertext": [
            _plain(f"{label}: {name} for {length(end - start)} ({when})")
            for label, start, end, when in bars
        ],
        "hoverinfo": "text",
        "marker": {"color": colour, "line": {"width": 0}},
    }


def _lanes(traces: list[Json], names: list[str], window: Window) -> Figure:
    layout = _layout(window, height=_FRAME + _LANE * max(1, len(names)))
    layout |= {"barmode": "overlay", "bargap": 0.35, "hovermode": "closest"}
    layout["yaxis"] = _name_axis(names)
    return {"data": traces, "layout": layout}


def trouble_curves(found: Troubles, window: Window) -> Figure:
    traces: list[Json] = []
    for kind in CURVES:
        points = found.curves[kind]
        if not points:
            continue
        last = (window.end, points[-1][1])
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": TROUBLE_NAMES[kind],
                "x": [_time(at) for at, _ in (*points, last)],
                "y": [count for _, count in (*points, last)],
                "line": {"shape": "hv", "color": TROUBLE_COLOURS[kind], "width": 2},
                "fill": "tozeroy",
                "fillcolor": f"{TROUBLE_COLOURS[kind]}-soft",
                "hovertemplate": "%{y:,}<extra>%{fullData.name}</extra>",
            }
        )
    layout = _layout(window, height=260)
    highest = max((count for points in found.curves.values() for _, count in points), default=0)
    layout["yaxis"] = _count_axis("partitions", highest)
    layout["hovermode"] = "x unified"
    return {"data": traces, "layout": layout}


def churn_bars(found: Churn, window: Window) -> Figure:
    traces: list[Json] = [
        {
            "type": "bar",
            "name": bar,
            "x": [_time(start + found.width // 2) for start in found.starts],
            "y": list(numbers),
            "width": found.width / 1000,
            "marker": {"color": colour, "line": {"width": 0}},
            "hovertemplate": "%{y:,}<extra>%{fullData.name}</extra>",
        }
        for (bar, numbers), colour in zip(found.counts.items(), _BAR_COLOURS, strict=True)
        if any(numbers)
    ]
    layout = _layout(window, height=260)
    layout |= {"barmode": "stack", "bargap": 0.08, "hovermode": "x unified"}
    highest = max(map(sum, zip(*found.counts.values(), strict=True)), default=0)
    layout["yaxis"] = _count_axis(f"changes per {length(found.width)}", highest)
    return {"data": traces, "layout": layout}


def lag_lines(found: Groups, window: Window) -> Figure:
    traces: list[Json] = []
    for lag, colour in zip(found.lagging, _LINE_COLOURS, strict=False):
        if not lag.curve:
            continue
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": _plain(lag.group),
                "x": [_time(at) for at, _ in lag.curve],
                "y": [count for _, count in lag.curve],
                "line": {"color": colour, "width": 2, "shape": "hv"},
                "hovertemplate": "%{y:,} behind<extra>%{fullData.name}</extra>",
            }
        )
        last, level = lag.curve[-1]
        if lag.behind is not None:
            # No commit tells of this: segments say where it ended.
            traces.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "x": [_time(last), _time(window.end)],
                    "y": [level, lag.behind],
                    "line": {"color": colour, "width": 2, "dash": "dot"},
                    "hoverinfo": "skip",
                }
            )
    layout = _layout(window, height=280)
    highest = max((lag.highest for lag in found.lagging), default=0)
    layout["yaxis"] = _count_axis("records behind", highest)
    layout["hovermode"] = "x unified"
    layout["margin"] = {"l": 64, "r": 14, "t": 6, "b": 36}
    axis = layout["xaxis"]
    assert isinstance(axis, dict)
    axis["nticks"] = 4
    return {"data": traces, "layout": layout}


def growth_bars(found: Topics, window: Window) -> Figure:
    names = [each.topic for each in found.growing]
    trace: Json = {
        "type": "bar",
        "orientation": "h",
        "y": [_plain(name) for name in names],
        "x": [each.gained_bytes for each in found.growing],
        "text": [short_bytes(each.gained_bytes) for each in found.growing],
        "textposition": "auto",
        "cliponaxis": False,
        "hovertext": [
            _plain(
                f"{each.topic}: {plural(each.gained_records, 'record')}, "
                f"{short_bytes(round(each.per_second(window)))}/s"
            )
            for each in found.growing
        ],
        "hoverinfo": "text",
        "marker": {"color": "@line1", "line": {"width": 0}},
    }
    layout = _base(height=12 + _LANE * max(1, len(names)))
    layout |= {"bargap": 0.3, "showlegend": False, "hovermode": "closest"}
    layout["xaxis"] = {"visible": False, "fixedrange": True}
    layout["yaxis"] = _name_axis(names)
    layout["margin"] = {"l": 118, "r": 16, "t": 4, "b": 4}
    return {"data": [trace], "layout": layout}


def _base(height: int) -> Figure:
    return {
        "height": height,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": "@ink"},
        "hoverlabel": {
            "bgcolor": "@card",
            "bordercolor": "@line",
            "font": {"color": "@ink", "size": 13},
            "align": "left",
        },
    }


def _layout(window: Window, height: int) -> Figure:
    layout = _base(height)
    layout |= {
        "margin": {"l": 118, "r": 14, "t": 6, "b": 36},
        "showlegend": False,  # the page has its own, which wraps on a phone
        "xaxis": {
            "type": "date",
            "range": [_time(window.start), _time(max(window.end, window.start + 1000))],
            "gridcolor": "@grid",
            "linecolor": "@line",
            "zeroline": False,
            "tickfont": {"color": "@muted"},
            "nticks": 7,
            "tickangle": 0,
        },
    }
    return layout


def _name_axis(names: list[str]) -> Json:
    """From top to bottom; long names are cut in the middle, where they differ least."""
    return {
        "type": "category",
        "categoryorder": "array",
        "categoryarray": [_plain(name) for name in names],
        "tickmode": "array",
        "tickvals": [_plain(name) for name in names],
        "ticktext": [_plain(_cut(name)) for name in names],
        "range": [len(names) - 0.5, -0.5],
        "fixedrange": True,
        "showgrid": False,
        "zeroline": False,
        "ticklabelstandoff": 6,
    }


def _cut(name: str) -> str:
    return name if len(name) <= _LABEL else f"{name[: _LABEL // 2 - 1]}…{name[-_LABEL // 2 :]}"


def _count_axis(title: str, highest: int) -> Json:
    """Marks at whole numbers: left alone, plotly.js marks halves too, and rounds what it says."""
    marks: dict[str, Json] = {"dtick": 1} if highest < _MARKS else {"nticks": _MARKS}
    return {
        "title": {"text": title, "font": {"color": "@muted", "size": 12}, "standoff": 8},
        "rangemode": "tozero",
        "gridcolor": "@grid",
        "zerolinecolor": "@line",
        "tickfont": {"color": "@muted"},
        "tickformat": ",d",
        "fixedrange": True,
        **marks,
    }


def legend(figure: Figure) -> list[tuple[str, str]]:
    """What a figure's colours mean: the name of each trace, and of its colour."""
    traces = figure["data"]
    assert isinstance(traces, list)
    said = []
    for trace in traces:
        assert isinstance(trace, dict)
        paint = trace.get("marker") or trace.get("line")
        assert isinstance(paint, dict)
        if "name" in trace:
            said.append((html.unescape(str(trace["name"])), str(paint["color"]).removeprefix("@")))
    return said


def _time(at: int) -> str:
    """Without a zone: plotly.js shows it as it stands, and all times are UTC."""
    return f"{moment(at):%Y-%m-%d %H:%M:%S.%f}"[:-3]


def _plain(text: str) -> str:
    """plotly.js reads tags in text: names of groups and topics are no markup."""
    return html.escape(text, quote=False)
