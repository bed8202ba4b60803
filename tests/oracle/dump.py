"""Kafka's own DumpLogSegments: run it on files, and read its text back as dicts."""

from __future__ import annotations

import enum
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.oracle.jars import NEWEST
from tests.oracle.java import run


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
    out: dict[Path, str] = {}
    with tempfile.TemporaryDirectory() as scratch:
        copies: dict[str, Path] = {}
        for number, path in enumerate(paths):
            folder = Path(scratch) / str(number) / path.parent.name
            folder.mkdir(parents=True)
            stem = path.name.split(".")[0]
            for each in path.parent.glob(f"{stem}.*"):
                shutil.copy(each, folder)
            if path.suffix == ".checkpoint":
                shutil.copy(path, folder)
            copies[str(folder / path.name)] = path
        text = run(main, [*flags, "--files", ",".join(copies)], version=version)
    current: Path | None = None
    for line in text.splitlines(keepends=True):
        if line.startswith("Dumping ") and line[8:].strip() in copies:
            current = copies[line[8:].strip()]
            out[current] = f"Dumping {current.name}\n"
        elif current is not None:
            out[current] += line.replace(scratch, "")
    return out
