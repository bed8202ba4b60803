"""The message definitions inside Kafka's jars, and random instances of them as JSON."""

from __future__ import annotations

import base64
import json
import random
import re
import zipfile
from dataclasses import dataclass
from functools import cache
from typing import cast

from tests.oracle.jars import NEWEST, jars
from tests.oracle.lines import Json

Definition = dict[str, Json]
_RANGE = re.compile(r"(\d+)(?:(\+)|-(\d+))?$")
_TOP = 32767


def versions(text: str) -> range:
    """ "3+", "1-4", "2" or "none" as a range."""
    if text == "none":
        return range(0)
    match = _RANGE.match(text)
    if match is None:
        raise ValueError(f"not a version range: {text!r}")
    first = int(match[1])
    last = _TOP if match[2] else int(match[3] or first)
    return range(first, last + 1)


@cache
def definitions(version: str = NEWEST) -> dict[str, Definition]:
    """Every message definition of a release by its name."""
    out: dict[str, Definition] = {}
    for jar in sorted(jars(version).glob("kafka-*.jar")):
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if re.match(r"common/(message|metadata)/.*\.json$", name):
                    lines = archive.read(name).decode().splitlines()
                    text = "\n".join(line for line in lines if not line.lstrip().startswith("//"))
                    definition = json.loads(text)
                    out[definition["name"]] = definition
    return out


@dataclass
class Instances:
    """Random JSON for messages; `size` is about how long arrays and strings get."""

    rng: random.Random
    size: int = 3

    def make(self, definition: Definition, version: int) -> dict[str, Json]:
        structs = cast("list[Definition]", definition.get("commonStructs", []))
        self._common = {cast(str, each["name"]): each for each in structs}
        return self._struct(cast("list[Definition]", definition["fields"]), version)

    def _struct(self, fields: list[Definition], version: int) -> dict[str, Json]:
        out: dict[str, Json] = {}
        for field in fields:
            # A tagged-only field may name its versions in taggedVersions alone.
            where = cast(str, field.get("versions") or field.get("taggedVersions"))
            if version in versions(where):
                name = cast(str, field["name"])
                out[name[0].lower() + name[1:]] = self._field(field, version)
        return out

    def _field(self, field: Definition, version: int) -> Json:
        nullable = versions(cast(str, field.get("nullableVersions", "none")))
        if version in nullable and self.rng.random() < 0.25:
            return None
        kind = cast(str, field["type"])
        if kind.startswith("[]"):
            # Nested arrays multiply, so they are kept short.
            length = self.rng.choice([0, 1, 1, 2, self.size])
            return [self._value(kind[2:], field, version) for _ in range(length)]
        return self._value(kind, field, version)

    def _value(self, kind: str, field: Definition, version: int) -> Json:
        rng = self.rng
        if kind == "bool":
            return rng.random() < 0.5
        if kind == "float64":
            return rng.choice([0.0, -1.5, rng.uniform(-1e9, 1e9), 1e300])
        if kind in _INTEGERS:
            low, high = _INTEGERS[kind]
            return rng.choice([rng.randint(low, high), min(rng.randint(0, 100), high), low, high])
        if kind == "string":
            return "".join(rng.choice(_LETTERS) for _ in range(rng.choice([0, 1, 5 * self.size])))
        if kind == "uuid":
            data = rng.choice([bytes(16), rng.randbytes(16)])
            return base64.urlsafe_b64encode(data).decode().rstrip("=")
        if kind in ("bytes", "records"):
            return base64.b64encode(rng.randbytes(rng.choice([0, 1, 4 * self.size]))).decode()
        fields = field.get("fields") or self._common[kind]["fields"]
        return self._struct(cast("list[Definition]", fields), version)


_LETTERS = 'abcdefghijklmnop-._ äß鍵🔑"\\\n'
_INTEGERS = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
}
