"""Kafka's own storage tool, many times in one JVM; and the table of its features."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from tests.oracle.jars import NEWEST
from tests.oracle.java import run
from tests.oracle.lines import Json, LineProgram


@dataclass(frozen=True)
class Outcome:
    """How one run ended: `refused` is the message of the exception, with its class in `kind`."""

    code: int
    printed: str
    refused: str | None = None
    kind: str | None = None


class StorageTool(LineProgram):
    """`run(["format", "-t", ..., "-c", ...])`: what kafka-storage.sh does with these."""

    main = "StorageFormat"

    def run(self, args: Sequence[str]) -> Outcome:
        answer = self.ask({"args": list(args)})
        return Outcome(
            code=cast(int, answer["code"]),
            printed=cast(str, answer["printed"]),
            refused=cast("str | None", answer.get("refused")),
            kind=cast("str | None", answer.get("kind")),
        )


def feature_table(version: str = NEWEST) -> dict[str, Json]:
    """What the enums of a release say of metadata versions and features."""
    table: dict[str, Json] = json.loads(run("FeatureTable", ours=True, version=version))
    return table
