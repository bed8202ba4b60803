"""Kafka's own DumpLogSegments: run it on files, and read its text back as dicts."""

from __future__ import annotations

import enum
import json
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from tests.oracle.jars import NEWEST
from tests.oracle.java import JavaFailed, run
from tests.oracle.lines import Json


class Decoder(enum.Enum):
    """The decoder flags of DumpLogSegments."""

    NONE = None
    METADATA = "--cluster-metadata-decoder"
    OFFSETS = "--offsets-decoder"
    TRANSACTIONS = "--transaction-log-decoder"
    SHARE = "--share-group-state-decoder"


def decoder_for(path: Path) -> Decoder:
    """The decoder that suits a log or snapshot file, by the name of its folder."""
    folder = path.parent.name
    if path.suffix == ".checkpoint" or folder.startswith("__cluster_metadata-"):
        return Decoder.METADATA
    if folder.startswith("__consumer_offsets-"):
        return Decoder.OFFSETS
    if folder.startswith("__transaction_state-"):
        return Decoder.TRANSACTIONS
    if folder.startswith("__share_group_state-"):
        return Decoder.SHARE
    return Decoder.NONE


def dump_text(
    paths: Sequence[Path], decoder: Decoder = Decoder.NONE, *, version: str = NEWEST
) -> dict[Path, str]:
    """What DumpLogSegments prints for each file, on copies so that no file is touched."""
    main = "org.apache.kafka.tools.DumpLogSegments"
    if int(version.split(".")[0]) < 4:
        main = "kafka.tools.DumpLogSegments"
    flags = ["--deep-iteration", "--print-data-log"]
    if decoder.value is not None:
        flags.append(decoder.value)
    with tempfile.TemporaryDirectory() as scratch:
        copies = {_copy(path, Path(scratch) / str(n)): path for n, path in enumerate(paths)}
        names = {str(copy): path for copy, path in copies.items()}
        try:
            text = run(main, [*flags, "--files", ",".join(names)], version=version)
        except JavaFailed:
            # The tool gives up at the first file it cannot read to its end: ask one by one.
            text = "".join(
                run(main, [*flags, "--files", name], version=version, check=False, errors=True)
                for name in names
            )
    out: dict[Path, str] = {}
    current: Path | None = None
    for line in text.splitlines(keepends=True):
        if line.startswith("Dumping ") and line[8:].strip() in names:
            current = names[line[8:].strip()]
            out[current] = f"Dumping {current.name}\n"
        elif current is not None:
            out[current] += line.replace(scratch, "")
    return out


def _copy(path: Path, scratch: Path) -> Path:
    """A copy of the file with its segment's other files, in a folder of the same name."""
    folder = scratch / path.parent.name
    folder.mkdir(parents=True)
    for each in path.parent.glob(f"{path.name.split('.')[0]}.*"):
        shutil.copy(each, folder)
    return folder / path.name


_BATCH = re.compile(r"(?:baseOffset|offset): -?\d+ .*\bisvalid: (?:true|false)$")
_PAIR = re.compile(r"(\w+): (\[.*?\](?= |$)|\S+) ?")
_CONTROL = re.compile(
    r"(LeaderChange|SnapshotHeader|SnapshotFooter|KRaftVersion|KRaftVoters):? (\{.*)", re.DOTALL
)
_CONTENT = re.compile(r"(?:^| )(?:key: (?P<key>.*?) ?)?payload: (?P<payload>.*)$", re.DOTALL)


def parse_log(text: str) -> list[dict[str, Json]]:
    """The batches of a dumped .log or .checkpoint; each has its `records`.

    Numbers and booleans are parsed, as are keys and payloads that are JSON. A control record
    has `control` (the name Kafka prints) and its content as `payload`.
    """
    batches: list[dict[str, Json]] = []
    for entry in _entries(text):
        if _BATCH.match(entry):
            batches.append({**_pairs(entry)[0], "records": []})
        elif entry.startswith("| ") and batches:
            cast("list[Json]", batches[-1]["records"]).append(_record(entry[2:]))
    return batches


def parse_entries(text: str) -> list[dict[str, Json]]:
    """The entries of a dumped .index, .timeindex, .txnindex or producer .snapshot."""
    return [_pairs(line.replace(" -> ", ": "))[0] for line in text.splitlines()[1:] if ": " in line]


def _entries(text: str) -> list[str]:
    # A raw payload may contain line ends: what starts no entry continues the last one.
    out: list[str] = []
    for line in text.split("\n"):
        if line.startswith("| offset: ") or _BATCH.match(line) or not out:
            out.append(line)
        else:
            out[-1] += "\n" + line
    return [entry.rstrip("\n") for entry in out]


def _record(text: str) -> dict[str, Json]:
    control = _CONTROL.search(text)
    if control is not None and " payload: " not in text[: control.start()]:
        head, _ = _pairs(text[: control.start()])
        return {**head, "control": control[1], "payload": _parsed(control[2])}
    head, rest = _pairs(text, stop=("key", "payload", "endTxnMarker"))
    if rest.startswith("endTxnMarker: "):
        # endTxnMarker: COMMIT coordinatorEpoch: 0
        words = rest.split()
        return {**head, "control": words[1], "payload": {"coordinatorEpoch": int(words[3])}}
    content = _CONTENT.search(rest)
    if content is not None:
        if content["key"] is not None:
            head["key"] = _parsed(content["key"])
        head["payload"] = _parsed(content["payload"])
    elif rest.startswith("key: "):
        head["key"] = _parsed(rest.removeprefix("key: "))
    return head


def _pairs(text: str, stop: tuple[str, ...] = ()) -> tuple[dict[str, Json], str]:
    """Leading `name: value` pairs, and what is left when one of `stop` is next."""
    out: dict[str, Json] = {}
    at = 0
    while (match := _PAIR.match(text, at)) is not None and match[1] not in stop:
        value = match[2]
        if match[1] == "headerKeys":
            out[match[1]] = [name for name in value[1:-1].split(",") if name]
        else:
            out[match[1]] = _scalar(value)
        at = match.end()
    return out, text[at:]


def _scalar(text: str) -> Json:
    if text in ("true", "false"):
        return text == "true"
    if text == "OptionalLong.empty":
        return None
    optional = re.fullmatch(r"OptionalLong\[(-?\d+)\]", text)
    if optional is not None:
        return int(optional[1])
    try:
        # Kafka before 3.0 forgets a brace after a record's crc.
        return int(text.rstrip("},"))
    except ValueError:
        return text


def _parsed(text: str) -> Json:
    try:
        return cast(Json, json.loads(text))
    except ValueError:
        return text
