"""Quotas by entity: a user, a client id, both together, or an address."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from kraftline.spark.history.entities import Said
from kraftline.spark.history.staged import fields


def client_quotas() -> Said:
    quota = fields("CLIENT_QUOTA_RECORD")
    entity = _in_order(quota["entity"])
    columns = {
        "entity": entity,
        "entity_text": _text(entity),
        "key": quota["key"],
        "value": quota["value"],
    }
    return {"CLIENT_QUOTA_RECORD": (~quota["remove"], columns)}


def _in_order(entity: Column) -> Column:
    """By type; a type named twice counts as its last name says."""
    last = F.filter(
        entity,
        lambda each, at: (
            ~F.exists(
                F.slice(entity, at + 2, F.size(entity)),
                lambda other: other["entity_type"] == each["entity_type"],
            )
        ),
    )
    return F.array_sort(last)


def _text(entity: Column) -> Column:
    """`client-id=app,user=alice`; a type without a name is its default. No two entities share a
    text: what separates is marked where it is part of a name."""

    def one(each: Column) -> Column:
        name = F.regexp_replace(each["entity_name"], r"([\\,])", r"\\$1")
        named = F.concat(each["entity_type"], F.lit("="), name)
        return F.coalesce(named, each["entity_type"])

    return F.array_join(F.transform(entity, one), ",")
