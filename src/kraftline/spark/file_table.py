"""`files`: what was surveyed, of which state of each file, so that it is not done again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import pyarrow as pa
from msgspec.structs import asdict

from kraftline.lake.lake import Lake
from kraftline.lake.tables import Table
from kraftline.spark import survey
from kraftline.spark.inputs import InputFile
from kraftline.spark.survey import Known
from kraftline.spark.survey_rows import SCHEMA, SurveyRow

FILES: Final = Table(
    "files",
    pa.schema(
        [
            pa.field("cluster_id", pa.string()),
            pa.field("size", pa.int64()),
            pa.field("modified", pa.int64()),
            pa.field("node", pa.int32()),
            *SCHEMA,
        ]
    ),
    ("file", "from_position"),
    ("cluster_id",),
)
_OF_FILE: Final = ("cluster_id", "size", "modified", "node")


def known_files(lake: Lake | None) -> dict[str, Known]:
    """What the lake's build knows of files, by path."""
    if lake is None or FILES.name not in lake.build.versions:
        return {}
    rows: dict[str, list[SurveyRow]] = {}
    states: dict[str, tuple[int, int]] = {}
    for row in lake.dataset(FILES.name).to_pylist():
        file = {name: row.pop(name) for name in _OF_FILE}
        rows.setdefault(row["file"], []).append(SurveyRow(**row))
        states[row["file"]] = file["size"], file["modified"]
    return {
        path: Known(*states[path], tuple(survey.in_order(found))) for path, found in rows.items()
    }


def file_rows(files: Iterable[InputFile], surveyed: Mapping[str, Iterable[SurveyRow]]) -> pa.Table:
    rows = [
        {
            "cluster_id": file.cluster_id,
            "size": file.size,
            "modified": file.modified,
            "node": file.node,
            **asdict(row),
        }
        for file in files
        for row in surveyed[file.path]
    ]
    return pa.Table.from_pylist(rows, FILES.columns)
