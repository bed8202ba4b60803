"""Kafka's JSON definitions of messages, out of its jars, with their quirks evened out."""

from __future__ import annotations

import json
import re
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kraftline.schema.types import NO_VERSIONS, Versions

# Definitions stand as resources under these names; tiered storage has others beside them.
_RESOURCE = re.compile(r"(common/(message|metadata)/\w+|message/ProducerSnapshot)\.json")
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*')


@dataclass(frozen=True)
class Field:
    name: str
    type: str  # without the [] of arrays
    is_array: bool
    versions: str
    nullable: str
    tag: int | None
    ignorable: bool
    flexible: str | None
    default: Any  # what the JSON says: text, number or null; "" when it says nothing
    fields: tuple[Field, ...]

    @property
    def is_struct(self) -> bool:
        return self.type[0].isupper()


@dataclass(frozen=True)
class Definition:
    name: str
    kind: str  # request, response, header, metadata, data, coordinator-key, coordinator-value
    source: str  # the jar's name without the version
    kafka: str
    key: int
    versions: Versions
    flexible: Versions
    listeners: tuple[str, ...]
    latest_unstable: bool
    fields: tuple[Field, ...]
    common: dict[str, tuple[str, tuple[Field, ...]]] = field(default_factory=dict)


def read_definitions(jars: Path, more: Path) -> list[Definition]:
    """Every definition in a folder of jars, and those in the folder `more` of JSON files."""
    found: dict[str, Definition] = {}
    for jar in sorted(jars.glob("kafka-*.jar")):
        source, _, kafka = jar.stem.rpartition("-")
        with zipfile.ZipFile(jar) as archive:
            for name in sorted(archive.namelist()):
                if _RESOURCE.fullmatch(name):
                    definition = _definition(_json(archive.read(name).decode()), source, kafka)
                    found[definition.name] = definition
    if not found:
        raise SystemExit(f"{jars} holds no Kafka jar with definitions")
    for path in sorted(more.glob("*.json")):
        content = _json(path.read_text())
        found.setdefault(content["name"], _definition(content, "", content["kafka"]))
    return [found[name] for name in sorted(found)]


def _json(text: str) -> dict[str, Any]:
    """JSON with // comments."""
    content: dict[str, Any] = json.loads(_COMMENT.sub(lambda m: m.group(1) or "", text))
    return content


def _definition(content: dict[str, Any], source: str, kafka: str) -> Definition:
    none = content["validVersions"] == "none"
    return Definition(
        name=content["name"],
        kind=content["type"],
        source=source,
        kafka=kafka,
        key=content.get("apiKey", -1),
        versions=NO_VERSIONS if none else Versions.parse(content["validVersions"]),
        flexible=NO_VERSIONS if none else Versions.parse(content["flexibleVersions"]),
        listeners=tuple(content.get("listeners", ())),
        latest_unstable=bool(content.get("latestVersionUnstable", False)),
        fields=tuple(map(_field, content.get("fields", ()))),
        common={
            struct["name"]: (struct["versions"], tuple(map(_field, struct["fields"])))
            for struct in content.get("commonStructs", ())
        },
    )


def _field(content: dict[str, Any]) -> Field:
    # Some tagged fields only say in which versions they are tagged.
    versions = content["versions"] if "versions" in content else content["taggedVersions"]
    if "taggedVersions" in content and content["taggedVersions"] != versions:
        raise SystemExit(f"{content['name']} is tagged in some versions only: not foreseen")
    return Field(
        name=content["name"],
        type=content["type"].removeprefix("[]"),
        is_array=content["type"].startswith("[]"),
        versions=versions,
        nullable=content.get("nullableVersions", "none"),
        tag=int(content["tag"]) if "tag" in content else None,
        ignorable=bool(content.get("ignorable", False)),
        flexible=content.get("flexibleVersions"),
        # A JSON null is no default for Kafka's generator; the word "null" is.
        default="" if content.get("default") is None else content["default"],
        fields=tuple(map(_field, content.get("fields", ()))),
    )
