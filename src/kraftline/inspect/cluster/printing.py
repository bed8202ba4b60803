"""Changes as lines: for people, and one object a line for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from kraftline.inspect.cluster.layout import Pen
from kraftline.inspect.cluster.telling import Told
from kraftline.inspect.moments import show_time

COLUMNS = ("offset", "time", "kind", "subject", "text", "before", "after", "because", "count")
_NO_OFFSET = -1


class Known(Protocol):
    """What can be asked about: `range` in words; below `committed_below` all is committed."""

    @property
    def range(self) -> str: ...
    @property
    def committed_below(self) -> int | None: ...


def as_object(told: Told) -> dict[str, Any]:
    """All that is known of a change; offset and time are left out where it has none."""
    change = told.change
    out: dict[str, Any] = {}
    if told.offset != _NO_OFFSET:
        out = {"offset": told.offset, "time": told.time}
    out |= {
        "kind": change.kind,
        "subject": change.subject,
        "text": change.text,
        "before": change.before,
        "after": change.after,
        "because": change.because,
    }
    if change.topic is not None:
        out["topic"] = change.topic
    if change.partition is not None:
        out["partition"] = change.partition
    if change.brokers:
        out["brokers"] = list(change.brokers)
    if told.count > 1:
        out |= {"count": told.count, "subjects": list(told.subjects)}
    return out


def story_lines(told: Iterable[Told], pen: Pen) -> Iterator[str]:
    """Offset, time and text; a new day gets a line of its own."""
    day = None
    for one in told:
        when = show_time(one.time)
        if when[:10] != day:
            day = when[:10]
            yield pen.bold(day)
        yield f"{one.offset:>10}  {pen.dim(when[11:])}  {one.change.text}"


def remarks(history: Known, offset: int, *, quick: bool = False) -> Iterator[str]:
    """What to know of an answer up to an offset: where it begins, whether all of it is committed,
    and the range."""
    if quick:
        yield "from the newest snapshot on, as a restarting node would read it"
    committed = history.committed_below
    if committed is None:
        yield "no snapshot tells what is committed: the last records may not be"
    elif offset >= committed:
        upto = "nothing" if not committed else f"up to offset {committed - 1}"
        yield f"committed for certain: {upto}; records above may not be"
    yield f"can be asked about {history.range}"


_GROUPS = (
    ("feature.", "Features"),
    ("voters.", "Voters"),
    ("controller.", "Controllers"),
    ("broker.", "Brokers"),
    ("topic.", "Topics"),
    ("partitions.", "Topics"),
    ("leader.", "Leaders"),
    ("isr.", "In sync"),
    ("elr.", "In sync"),
    ("reassignment.", "Replicas"),
    ("replicas.", "Replicas"),
    ("directory.", "Directories"),
    ("config.", "Configs"),
    ("quota.", "Quotas"),
    ("acl.", "ACLs"),
    ("scram.", "Users"),
    ("token.", "Tokens"),
)


def difference_lines(told: Iterable[Told], pen: Pen) -> Iterator[str]:
    """Under a heading for each kind of thing."""
    names = dict.fromkeys([*(name for _, name in _GROUPS), "Other"])
    groups: dict[str, list[str]] = {name: [] for name in names}
    for one in told:
        kind = one.change.kind
        group = next((name for start, name in _GROUPS if kind.startswith(start)), "Other")
        groups[group].append(one.change.text)
    for name, lines in groups.items():
        if lines:
            yield ""
            yield pen.bold(name)
            yield from (f"  {line}" for line in lines)
