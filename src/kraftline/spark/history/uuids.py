"""Ids as Kafka writes them (22 letters of base64), in the order that Java gives them."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

_HEX = "0123456789ABCDEF"


def in_order(ids: Column) -> Column:
    """As `metadata.registrations.in_order`: by two signed numbers."""
    keyed = F.transform(ids, lambda each: F.struct(_key(each).alias("key"), each.alias("id")))
    return F.transform(F.array_sort(keyed), lambda each: each["id"])


def _key(each: Column) -> Column:
    """Text that sorts as the two numbers do: the first bit of each turned over."""
    plain = F.concat(F.translate(each, "-_", "+/"), F.lit("=="))
    digits = F.hex(F.unbase64(plain))

    def signed(start: int) -> Column:
        first = F.translate(F.substring(digits, start, 1), _HEX, _HEX[8:] + _HEX[:8])
        return F.concat(first, F.substring(digits, start + 1, 15))

    return F.concat(signed(1), signed(17))
