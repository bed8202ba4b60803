"""`kraftline dump`: print records."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain, islice

import click

from kraftline.cli.options import PATH, format_option, instant
from kraftline.cli.progress import Bar
from kraftline.errors import NotKafka
from kraftline.inspect.dump import followed_rows, json_lines, read_all, total_bytes
from kraftline.inspect.dump.payloads import known_types, type_names
from kraftline.inspect.dump.rows import Row, Selection, can_hold, json_line, type_name
from kraftline.inspect.dump.sources import Decoder, Source, Wanted, find_sources
from kraftline.storage.segment import Damage


def _types(ctx: click.Context, param: click.Parameter, names: tuple[str, ...]) -> frozenset[str]:
    """Names of types as rows are compared by; control records of unknown types have a number."""
    known = {type_name(name): name for name in known_types()} if names else {}
    for name in names:
        if type_name(name) not in known and not name.isdecimal():
            from difflib import get_close_matches

            near = [known[each] for each in get_close_matches(type_name(name), known)]
            hint = f"did you mean {' or '.join(near)}?"
            if not near:
                hint = f"there are {', '.join(sorted(known.values()))}"
            raise click.BadParameter(f"no record type is called {name!r}; {hint}", ctx, param)
    return frozenset(map(type_name, names))


@click.command()
@click.argument("paths", nargs=-1, required=True, type=PATH, metavar="PATH...")
@format_option
@click.option(
    "--decoder",
    type=click.Choice(["auto", *(decoder.value for decoder in Decoder)]),
    default="auto",
    show_default=True,
    help="How records are typed; auto goes by the topic's name, and knows a copied metadata log.",
)
@click.option(
    "--type",
    "types",
    multiple=True,
    callback=_types,
    help="Only records of this type: TOPIC_RECORD, OFFSET_COMMIT, LEADER_CHANGE, …",
)
@click.option(
    "--topic",
    "topics",
    multiple=True,
    help="Only this topic (* matches): its own records, and records about it in internal logs.",
)
@click.option(
    "--key", "keys", multiple=True, help="Only records with this key: text, or 0x… in hex."
)
@click.option("--from-offset", type=int, help="Only from this offset on.")
@click.option("--to-offset", type=int, help="Only up to this offset, inclusive.")
@click.option("--since", callback=instant, metavar="TIME", help="Only from this time on: ISO-8601.")
@click.option("--until", callback=instant, metavar="TIME", help="Only up to this time, inclusive.")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many records.")
@click.option("--snapshots", is_flag=True, help="The snapshots of a metadata log as well.")
@click.option("--follow", is_flag=True, help="Go on as the log grows (one partition).")
@click.option("--strict", is_flag=True, help="Stop at the first damage, with exit code 1.")
def command(
    paths: tuple[str, ...],
    form: str,
    decoder: str,
    types: frozenset[str],
    topics: tuple[str, ...],
    keys: tuple[str, ...],
    from_offset: int | None,
    to_offset: int | None,
    since: int | None,
    until: int | None,
    limit: int | None,
    snapshots: bool,
    follow: bool,
    strict: bool,
) -> None:
    """Print the records in PATH: segments, snapshots, partition or log directories.

    Nothing is locked or changed; a live broker may be writing. Damage is reported on stderr, and
    reading goes on behind it where that is possible; the exit code is then 1.

    \b
    Examples:
      kraftline dump /var/lib/kafka/orders-0 --limit 10
      kraftline dump /var/lib/kafka/__cluster_metadata-0 --type PARTITION_CHANGE_RECORD
      kraftline dump /var/lib/kafka --topic orders --since 2026-03-01T03:00Z --format jsonl
      kraftline dump --follow /var/lib/kafka/__consumer_offsets-12
    """
    if from_offset is not None and to_offset is not None and to_offset < from_offset:
        raise click.UsageError(f"--to-offset {to_offset} lies before --from-offset {from_offset}")
    if since is not None and until is not None and until < since:
        raise click.UsageError("--until lies before --since")
    troubles = Troubles(strict)
    wanted = Wanted(None if decoder == "auto" else Decoder(decoder), topics, snapshots)
    selection = Selection(
        types=types,
        topics=wanted,
        keys=frozenset(chain.from_iterable(map(_keys, keys))),
        from_offset=from_offset,
        to_offset=to_offset,
        since=since,
        until=until,
    )
    sources = list(find_sources(paths, wanted, troubles.unreadable))
    if types and sources and not can_hold(sources, types):
        raise click.UsageError(
            "--type: nothing says that the records here are of a topic that Kafka itself reads, so "
            "none has a type; --decoder says how to read them"
        )
    if follow:
        rows = followed_rows(sources, selection, troubles.damage)
        _print_rows(rows, sources, form, limit, at_once=True)
    else:
        any_shown = _dump(sources, selection, form, limit, troubles)
        if topics and not any_shown and not any(_is_of_topic(each, wanted) for each in sources):
            names = " or ".join(topics)
            click.echo(
                f"kraftline: no partition of {names} is here, and no record of those that were "
                "asked for is about it",
                err=True,
            )
    sys.stdout.flush()
    sys.exit(1 if troubles.seen else 0)


def _dump(
    sources: list[Source], selection: Selection, form: str, limit: int | None, troubles: Troubles
) -> bool:
    """Whether there was anything to print."""
    any_shown = False

    def noted(rows: Iterable[Row]) -> Iterator[Row]:
        nonlocal any_shown
        for row in rows:
            any_shown = True
            yield row

    with Bar(lambda: total_bytes(sources), "reading", quiet=sys.stdout.isatty()) as bar:
        told = troubles.damage, troubles.unreadable
        if form == "jsonl" and limit is None:
            for text in json_lines(sources, selection, *told, bar.update):
                any_shown = any_shown or bool(text)
                sys.stdout.buffer.write(text)
        else:
            rows = read_all(sources, selection, *told, bar.update)
            _print_rows(noted(rows), sources, form, limit)
    return any_shown


def _is_of_topic(source: Source, wanted: Wanted) -> bool:
    return source.partition is not None and wanted.topic(source.partition.topic)


def _print_rows(
    rows: Iterable[Row],
    sources: list[Source],
    form: str,
    limit: int | None,
    *,
    at_once: bool = False,
) -> None:
    out = sys.stdout.buffer
    for line in _formatted(islice(rows, limit), sources, form):
        out.write(line)
        if at_once:
            out.flush()


def _formatted(rows: Iterable[Row], sources: list[Source], form: str) -> Iterator[bytes]:
    if form == "jsonl":
        yield from map(json_line, rows)
        return
    if form == "json":
        before = b"[\n"
        for row in rows:
            yield before + json_line(row).rstrip()
            before = b",\n"
        yield b"[]\n" if before == b"[\n" else b"\n]\n"
        return
    from kraftline.inspect.dump.text import Painter, csv_lines, table

    if form == "csv":
        lines = csv_lines(rows)
    else:
        terminal = sys.stdout.isatty()
        # A terminal that nobody has told its size says 0 columns.
        width = os.get_terminal_size().columns or None if terminal else None
        painter = Painter(terminal and "NO_COLOR" not in os.environ, width)
        lines = table(rows, painter, type_names(sources))
    for line in lines:
        yield line.encode(errors="surrogatepass") + b"\n"


def _keys(text: str) -> Iterator[bytes]:
    """What the text may mean. A table shows bytes as 0x…, and there are keys that are such text."""
    yield text.encode()
    if text.startswith("0x"):
        with suppress(ValueError):
            yield bytes.fromhex(text[2:])


class Troubles:
    """Says on stderr what could not be read, and remembers that there was something."""

    def __init__(self, strict: bool) -> None:
        self._strict = strict
        self.seen = 0

    def damage(self, damage: Damage) -> None:
        error = damage.error()
        if self._strict:
            raise error
        self._say(str(error))

    def unreadable(self, error: NotKafka) -> None:
        self._say(str(error))
        if self._strict:
            sys.exit(1)  # what was asked for is Kafka's all the same

    def _say(self, text: str) -> None:
        self.seen += 1
        sys.stdout.flush()
        click.echo(f"kraftline: {text}", err=True)
