"""Which declaration goes into which file, and the tables that find it there."""

from __future__ import annotations

from typing import TypeAlias

from schema_classes import module_text, snake_case
from schema_definitions import Definition

Layout: TypeAlias = dict[str, str]


def lay_out(definitions: list[Definition]) -> Layout:
    """Every generated file, by its path under `schema/`."""
    files: Layout = {}
    metadata(files, [d for d in definitions if d.kind == "metadata"])
    return files


def metadata(files: Layout, records: list[Definition]) -> None:
    records = sorted(records, key=lambda d: d.key)
    for record in records:
        doc = f"{record.name}: metadata record {record.key}, versions {record.versions}."
        files[f"metadata/{snake_case(record.name)}.py"] = module_text(doc, {"SPEC": record})
    rows = [f'    {d.key}: ("{snake_case(d.name)}", "{d.name}"),' for d in records]
    files["metadata/table.py"] = "\n".join(
        [
            '"""Metadata record types: id to module and class."""\n',
            "from __future__ import annotations\n",
            "RECORDS: dict[int, tuple[str, str]] = {",
            *rows,
            "}\n",
        ]
    )
    files["metadata/__init__.py"] = package_text(
        "metadata",
        "The records of `__cluster_metadata`, one module each, imported at first use.",
        {d.name: snake_case(d.name) for d in records},
        {"registry": ("TYPE_IDS", "TYPE_NAMES", "record_class", "record_classes")},
    )


def package_text(
    package: str, doc: str, classes: dict[str, str], more: dict[str, tuple[str, ...]]
) -> str:
    """A package's `__init__`: classes by name, imported lazily, and names of its other modules."""
    dotted = f"kraftline.schema.{package}"
    names = [*classes, *(name for names in more.values() for name in names)]
    return "\n".join(
        [
            f'"""{doc}"""\n',
            "from __future__ import annotations\n",
            "from typing import TYPE_CHECKING\n",
            "from kraftline.schema.lazy import lazy_names",
            *(f"from {dotted}.{m} import {', '.join(ns)}" for m, ns in more.items()),
            "\nif TYPE_CHECKING:",
            *(f"    from {dotted}.{module} import {name}" for name, module in classes.items()),
            "else:",
            "    __getattr__ = lazy_names(__name__, {",
            *(f'    "{name}": "{module}",' for name, module in classes.items()),
            "})\n",
            f"__all__ = [{', '.join(repr(name) for name in names)}]\n",
        ]
    )
