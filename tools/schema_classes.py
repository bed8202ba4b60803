"""Definitions as Python classes, in the language of `kraftline.schema.types`."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator

from schema_definitions import Definition, Field

from kraftline.schema.fields import camel_case
from kraftline.schema.types import Versions

_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_TYPES = {
    "bool": "Bool",
    "int8": "Int8",
    "int16": "Int16",
    "uint16": "UInt16",
    "int32": "Int32",
    "uint32": "UInt32",
    "int64": "Int64",
    "float64": "Float64",
    "string": "String",
    "bytes": "Bytes",
    "records": "Records",
    "uuid": "Uuid",
}
# Everything a declaration may use; `ruff` takes away what it does not.
_VOCABULARY = [
    *("IGNORABLE", "ZERO", "Flexible", "Message", "Name", "Nullable", "Spec", "Tag", "V"),
    *_TYPES.values(),
]


def snake_case(name: str) -> str:
    return _WORDS.sub("_", name.replace("KRaft", "Kraft")).lower()


def module_text(doc: str, members: dict[str, Definition]) -> str:
    """A module with these messages; the keys are the names of their Spec constants."""
    names = struct_names(members.values())
    parts = [
        f'"""{doc}"""\n',
        "from __future__ import annotations\n",
        "from typing import Annotated, ClassVar\n",
        f"from kraftline.schema.types import {', '.join(_VOCABULARY)}\n",
    ]
    parts += [f"{constant} = {_spec(definition)}" for constant, definition in members.items()]
    for constant, definition in members.items():
        parts += ["\n", *_classes(definition, constant, names[definition.name])]
    return "\n".join(parts) + "\n"


def struct_names(definitions: Iterable[Definition]) -> dict[str, dict[str, str]]:
    """The class names of structs, per message: those that two messages use get its name too."""
    structs = {d.name: [name for name, _, _ in _structs(d)] for d in definitions}
    taken = [name for names in structs.values() for name in names]
    return {
        message: {
            name: name if taken.count(name) == 1 and name not in structs else f"{message}{name}"
            for name in names
        }
        for message, names in structs.items()
    }


def _structs(definition: Definition) -> Iterator[tuple[str, Versions, tuple[Field, ...]]]:
    """Structs inside a message, each after those it uses, with the versions it is used in."""

    def inside(
        fields: tuple[Field, ...], versions: Versions
    ) -> Iterator[tuple[str, Versions, tuple[Field, ...]]]:
        for field in fields:
            if field.is_struct and field.fields:
                used = versions & Versions.parse(field.versions)
                yield from inside(field.fields, used)
                yield field.type, used, field.fields

    # A common struct may use another, so the ones without structs of their own go first.
    common = sorted(
        definition.common.items(),
        key=lambda item: sum(f.type in definition.common for f in item[1][1]),
    )
    for name, (versions, fields) in common:
        used = definition.versions & Versions.parse(versions)
        yield from inside(fields, used)
        yield name, used, fields
    yield from inside(definition.fields, definition.versions)


def _spec(definition: Definition) -> str:
    said = [f'versions="{definition.versions}"', f'flexible="{definition.flexible}"']
    if definition.key >= 0:
        said.insert(0, f"key={definition.key}")
    if definition.listeners:
        said.append(f"listeners={definition.listeners!r}")
    if definition.latest_unstable:
        said.append("latest_unstable=True")
    said.append(f'kafka="{definition.kafka}"')
    return f"Spec({', '.join(said)})\n"


def _classes(definition: Definition, constant: str, names: dict[str, str]) -> Iterator[str]:
    for name, versions, fields in _structs(definition):
        yield _class(names[name], constant, versions, fields, names)
    yield _class(definition.name, constant, definition.versions, definition.fields, names)


def _class(
    name: str, constant: str, versions: Versions, fields: tuple[Field, ...], names: dict[str, str]
) -> str:
    lines = [f"class {name}(Message, frozen=True):", f"    SPEC: ClassVar = {constant}"]
    lines += [f"    {_field(field, versions, names)}" for field in fields]
    return "\n".join(lines) + "\n\n"


def _field(field: Field, owner: Versions, names: dict[str, str]) -> str:
    name = snake_case(field.name)
    if keyword.iskeyword(name):
        name += "_"
    there = owner & Versions.parse(field.versions)
    nullable = there & Versions.parse(field.nullable)
    marks = []
    if there != owner:
        marks.append(f'V("{field.versions}")')
        if field.ignorable:
            marks.append("IGNORABLE")
    if nullable and nullable != there:
        marks.append(f'Nullable("{field.nullable}")')
    if not nullable and _default(field, names, nullable) == "None":
        marks.append('Nullable("none")')
    if field.tag is not None:
        marks.append(f"Tag({field.tag})")
    if field.flexible is not None:
        marks.append(f'Flexible("{field.flexible}")')
    json_name = field.name[0].lower() + field.name[1:]
    if camel_case(name) != json_name:
        marks.append(f'Name("{json_name}")')
    kind = names[field.type] if field.is_struct else _TYPES[field.type]
    kind = f"tuple[{kind}, ...]" if field.is_array else kind
    default = _default(field, names, nullable)
    kind = f"{kind} | None" if nullable or default == "None" else kind
    kind = f"Annotated[{', '.join((kind, *marks))}]" if marks else kind
    return f"{name}: {kind} = {default}"


def _default(field: Field, names: dict[str, str], nullable: Versions) -> str:
    said = str(field.default).lower() if field.type == "bool" else field.default
    if said == "null":
        return "None"
    if field.is_array:
        return "()"
    if field.is_struct:
        return f"{names[field.type]}()"
    if field.type == "bool":
        return str(said == "true")
    if field.type == "string":
        return repr(str(said))
    if field.type == "records" and nullable:
        return "None"
    if field.type in ("bytes", "records"):
        return 'b""'
    if field.type == "uuid":
        return "ZERO" if said == "" else f'Uuid.parse("{said}")'
    if field.type == "float64":
        return repr(float(said or 0))
    return str(int(str(said or 0), 0))
