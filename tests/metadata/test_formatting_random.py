"""`format` beside Kafka's storage tool on thousands of command lines that nobody thought of."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.effort import rounds
from tests.fixtures.formatted.cases import Case
from tests.fixtures.formatted.make import read
from tests.metadata.format_dice import Dice
from tests.metadata.formatted import OurOutcome, describe, run_format
from tests.oracle.storage import Outcome, StorageTool

pytestmark = pytest.mark.oracle

# Where other words serve better, both are taken for the same: (Kafka's or ours, what is held).
OWN_WORDS = (
    # Of several directories, Kafka names the one that its hash table has first.
    (r"^Log directory \S+ is already formatted\..*", "already formatted"),
    (r"(configuration )broker\.id(: Not a number)", r"\1node.id\2"),
    (r"Optional\[(\S+)\] found", r"\1 found"),
    (r"(property 'listener\.security\.protocol\.map': ).*", r"\1"),
    (r".*/proc/nope: .*", "/proc/nope"),
    (r"(process\.roles=controller)'$", r"\1"),
)


@dataclass(frozen=True)
class Seen:
    """`how` it ended: formatted, refused or wrong use. `wrote` is every file that is new, record by
    record, and meta.properties line by line but for the random id."""

    how: str
    words: str
    printed: list[str]
    wrote: dict[str, Any]


@pytest.fixture(scope="module")
def kafka() -> Iterator[StorageTool]:
    with StorageTool() as tool:
        yield tool


@pytest.mark.parametrize(
    ("first", "count"), [(0, 120), pytest.param(1_000, 400, marks=pytest.mark.soak)]
)
def test_any_command_line_does_what_kafka_does(
    first: int, count: int, kafka: StorageTool, tmp_path: Path
) -> None:
    for seed in range(first, first + (count if first == 0 else rounds(count))):
        case = Dice(seed).case()
        expected = seen(case, tmp_path / "kafka" / "x", kafka)
        found = seen(case, tmp_path / "ours" / "x")
        # What is added to Kafka's words says what to try.
        if found.how == "refused" and found.words.startswith(expected.words):
            found = Seen(found.how, expected.words, found.printed, found.wrote)
        assert found == expected, (seed, case)


def seen(case: Case, root: Path, kafka: StorageTool | None = None) -> Seen:
    """What comes of a case, with Kafka's tool or ours."""
    args = case.arguments(root)
    before = read(root)
    done: Outcome | OurOutcome = (
        run_format(args, root) if kafka is None else kafka.run(["format", *args])
    )
    after = read(root)
    new = {name: data for name, data in after.items() if before.get(name) != data}
    shutil.rmtree(root)
    if done.code != 0:
        how = "wrong use" if done.refused is None else "refused"
        # Kafka's tool may have begun to write; ours looks at everything first.
        return Seen(how, _words(done.refused or "", root), [], {})
    for name, data in new.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    wrote = describe(root) if new else {}
    for name, data in new.items():
        if name.endswith("meta.properties"):
            wrote[f"{name}, its lines"] = [
                line for line in data.splitlines() if not line.startswith((b"#", b"directory.id"))
            ]
    shutil.rmtree(root, ignore_errors=True)
    lines = done.printed.replace(str(root), "DIR").splitlines()
    told = [line for line in lines if line.startswith(("Formatting", "All of", "I/O"))]
    return Seen("formatted", "", sorted(told), wrote | dict.fromkeys(new.keys() - wrote.keys()))


def _words(text: str, root: Path) -> str:
    text = text.replace(str(root), "DIR").removeprefix("requirement failed: ")
    for pattern, held in OWN_WORDS:
        text = re.sub(pattern, held, text, flags=re.S)
    return text
