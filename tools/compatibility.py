"""Writes the tables of docs/compatibility.md from the declarations.

`--check` changes nothing and exits with 1 when they are stale.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from kraftline.schema.api.registry import apis, request_class, response_class
from kraftline.schema.control.frame import ControlType, control_class
from kraftline.schema.coordinator.frame import TOPICS, record_classes
from kraftline.schema.metadata import TYPE_NAMES, record_class

PAGE = Path(__file__).parent.parent / "docs" / "compatibility.md"
START, END = "<!-- tables: made by tools/compatibility.py -->", "<!-- end of tables -->"


def tables() -> Iterator[str]:
    yield "### Metadata records (`__cluster_metadata`)\n"
    yield "| id | record | versions | taken from Kafka |"
    yield "|---|---|---|---|"
    for key, name in TYPE_NAMES.items():
        spec = record_class(key).SPEC
        yield f"| {key} | {name} | {spec.versions} | {spec.kafka} |"
    for topic in TOPICS.values():
        yield f"\n### Records of `{topic.name}`\n"
        yield "| type | record | value versions | taken from Kafka |"
        yield "|---|---|---|---|"
        for kind, (module, _, _) in topic.records.items():
            spec = record_classes(topic, kind)[1].SPEC
            yield f"| {kind} | {module.upper()} | {spec.versions} | {spec.kafka} |"
    yield "\n### Control records\n"
    yield "| type | record | versions | taken from Kafka |"
    yield "|---|---|---|---|"
    for control in ControlType:
        spec = control_class(control).SPEC
        yield f"| {control.value} | {control.name} | {spec.versions} | {spec.kafka} |"
    yield "\n### Requests and responses\n"
    yield "| key | API | request versions | response versions |"
    yield "|---|---|---|---|"
    for entry in apis():
        request, response = request_class(entry.key).SPEC, response_class(entry.key).SPEC
        unstable = " (newest unstable)" if request.latest_unstable else ""
        yield f"| {entry.key} | {entry.name} | {request.versions}{unstable} | {response.versions} |"


def main() -> int:
    page = PAGE.read_text()
    before, _, rest = page.partition(START)
    _, _, after = rest.partition(END)
    fresh = f"{before}{START}\n\n" + "\n".join(tables()) + f"\n\n{END}{after}"
    if "--check" in sys.argv[1:]:
        return int(fresh != page)
    PAGE.write_text(fresh)
    return 0


if __name__ == "__main__":
    sys.exit(main())
