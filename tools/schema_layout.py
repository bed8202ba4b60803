"""Which declaration goes into which file, and the tables that find it there."""

from __future__ import annotations

from typing import TypeAlias

from schema_classes import module_text, snake_case
from schema_definitions import Definition

Layout: TypeAlias = dict[str, str]


# The topics whose records are pairs of key and value, by the jar that defines them.
COORDINATORS = {
    "kafka-group-coordinator": ("group", "__consumer_offsets"),
    "kafka-transaction-coordinator": ("transaction", "__transaction_state"),
    "kafka-share-coordinator": ("share", "__share_group_state"),
}

CONTROL = (
    "ControlRecordTypeSchema",
    "EndTxnMarker",
    "KRaftVersionRecord",
    "LeaderChangeMessage",
    "SnapshotFooterRecord",
    "SnapshotHeaderRecord",
    "VotersRecord",
)
ONDISK = ("AbortedTxn", "ProducerSnapshot", "QuorumStateData")


def lay_out(definitions: list[Definition]) -> Layout:
    """Every generated file, by its path under `schema/`."""
    files: Layout = {}
    named = {d.name: d for d in definitions}
    metadata(files, [d for d in definitions if d.kind == "metadata"])
    for source, (package, topic) in COORDINATORS.items():
        keys = [d for d in definitions if d.kind == "coordinator-key" and d.source == source]
        coordinator(files, package, topic, sorted(keys, key=lambda d: d.key), named)
    files["coordinator/consumer_protocol.py"] = module_text(
        "What consumers of the classic protocol put into a group's bytes.",
        {
            "SUBSCRIPTION": named["ConsumerProtocolSubscription"],
            "ASSIGNMENT": named["ConsumerProtocolAssignment"],
        },
    )
    for package, names in (("control", CONTROL), ("ondisk", ONDISK)):
        for name in names:
            doc = f"{name}: versions {named[name].versions}."
            files[f"{package}/{snake_case(name)}.py"] = module_text(doc, {"SPEC": named[name]})
    apis(files, definitions, named)
    return files


def coordinator(
    files: Layout, package: str, topic: str, keys: list[Definition], named: dict[str, Definition]
) -> None:
    rows = []
    classes = {}
    for key in keys:
        value = named[f"{key.name.removesuffix('Key')}Value"]
        module = snake_case(key.name.removesuffix("Key"))
        doc = f"Record type {key.key} of `{topic}`; value versions {value.versions}."
        files[f"coordinator/{package}/{module}.py"] = module_text(doc, {"KEY": key, "VALUE": value})
        rows.append(f'    {key.key}: ("{module}", "{key.name}", "{value.name}"),')
        classes.update({key.name: module, value.name: module})
    files[f"coordinator/{package}/table.py"] = _table(
        f"Record types of `{topic}`: module, key class, value class.",
        "RECORDS: dict[int, tuple[str, str, str]]",
        rows,
    )
    files[f"coordinator/{package}/__init__.py"] = package_text(
        f"coordinator.{package}",
        f"The records of `{topic}`, imported at first use.",
        classes,
        {},
    )


def apis(files: Layout, definitions: list[Definition], named: dict[str, Definition]) -> None:
    rows, removed = [], []
    classes = {"RequestHeader": "header", "ResponseHeader": "header"}
    for request in sorted((d for d in definitions if d.kind == "request"), key=lambda d: d.key):
        name = request.name.removesuffix("Request")
        response = named[f"{name}Response"]
        if not request.versions:
            removed.append(f'    {request.key}: "{name}",')
            continue
        if (request.versions, request.flexible) != (response.versions, response.flexible):
            raise SystemExit(f"{name}: request and response have different versions")
        module = snake_case(name)
        doc = f"{name}: API {request.key}, versions {request.versions}."
        files[f"api/{module}.py"] = module_text(doc, {"REQUEST": request, "RESPONSE": response})
        rows.append(
            f'    {request.key}: ("{name}", "{request.versions}", "{request.flexible}",'
            f" {request.listeners!r}, {request.latest_unstable}),"
        )
        classes.update({request.name: module, response.name: module})
    files["api/header.py"] = module_text(
        "The headers in front of every request and response.",
        {"REQUEST": named["RequestHeader"], "RESPONSE": named["ResponseHeader"]},
    )
    files["api/default_principal_data.py"] = module_text(
        "A principal as an Envelope request carries it.", {"SPEC": named["DefaultPrincipalData"]}
    )
    classes["DefaultPrincipalData"] = "default_principal_data"
    files["api/table.py"] = _table(
        "APIs: name, versions, flexible versions, listeners, whether the newest is unstable.",
        "APIS: dict[int, tuple[str, str, str, tuple[str, ...], bool]]",
        rows,
    ) + "\n".join(
        [
            "# Names of keys that no version answers any more.",
            "REMOVED: dict[int, str] = {",
            *removed,
            "}\n",
        ]
    )
    files["api/__init__.py"] = package_text(
        "api",
        "Requests and responses, a module per API, imported at first use.",
        classes,
        {
            "registry": (
                "Api",
                "api",
                "apis",
                "request_class",
                "request_header_version",
                "response_class",
                "response_header_version",
            )
        },
    )


def _table(doc: str, declared: str, rows: list[str]) -> str:
    head = [f'"""{doc}"""\n', "from __future__ import annotations\n", f"{declared} = {{"]
    return "\n".join([*head, *rows, "}\n"])


def metadata(files: Layout, records: list[Definition]) -> None:
    records = sorted(records, key=lambda d: d.key)
    for record in records:
        doc = f"{record.name}: metadata record {record.key}, versions {record.versions}."
        files[f"metadata/{snake_case(record.name)}.py"] = module_text(doc, {"SPEC": record})
    rows = [f'    {d.key}: ("{snake_case(d.name)}", "{d.name}"),' for d in records]
    files["metadata/table.py"] = _table(
        "Metadata record types: id to module and class.",
        "RECORDS: dict[int, tuple[str, str]]",
        rows,
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
    every = [*classes, *(name for names in more.values() for name in names)]
    modules: dict[str, tuple[str, ...]] = {}
    for name, module in classes.items():
        modules[module] = (*modules.get(module, ()), name)
    return "\n".join(
        [
            f'"""{doc}"""\n',
            "from __future__ import annotations\n",
            "from typing import TYPE_CHECKING\n",
            "from kraftline.schema.lazy import lazy_names",
            *(f"from {dotted}.{m} import {', '.join(ns)}" for m, ns in more.items()),
            "\nif TYPE_CHECKING:",
            *(
                f"    from {dotted}.{module} import {', '.join(names)}"
                for module, names in modules.items()
            ),
            "else:",
            "    __getattr__ = lazy_names(__name__, {",
            *(f'    "{module}": {names!r},' for module, names in modules.items()),
            "})\n",
            f"__all__ = [{', '.join(repr(name) for name in every)}]\n",
        ]
    )
