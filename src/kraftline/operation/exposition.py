"""Numbers as Prometheus reads them: the text format, version 0.0.4."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal, TypeAlias

import msgspec

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
Kind: TypeAlias = Literal["counter", "gauge", "summary"]
_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


class Sample(msgspec.Struct, frozen=True, gc=False):
    """One number; `suffix` is behind the name of its family."""

    value: float
    labels: Mapping[str, str] = {}
    suffix: str = ""


class Family(msgspec.Struct, frozen=True):
    """Numbers of one name. Samples are made while they are written."""

    name: str
    kind: Kind
    help: str
    samples: Iterable[Sample]


def one(name: str, kind: Kind, help: str, value: float) -> Family:
    return Family(name, kind, help, (Sample(value),))


def lines(families: Iterable[Family]) -> Iterator[str]:
    """Without ends. A family without samples is left out."""
    for family in families:
        head = [f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.kind}"]
        for sample in family.samples:
            yield from head
            head = []
            yield f"{family.name}{sample.suffix}{_labels(sample.labels)} {_number(sample.value)}"


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    told = ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels.items())
    return f"{{{told}}}"


def _number(value: float) -> str:
    return repr(float(value)) if isinstance(value, float) else str(int(value))
