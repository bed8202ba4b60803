"""What of a record's JSON would be lost in a struct of the fields that were inferred."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    ArrayType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from kraftline.spark.topic_data.json_shape import alike, shape_of, unfit

LINE = StructType([StructField("sku", StringType()), StructField("count", LongType())])
ORDER = StructType(
    [
        StructField("id", LongType()),
        StructField("by", StructType([StructField("name", StringType())])),
        StructField("lines", ArrayType(LINE)),
        StructField("any", StringType()),
    ]
)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "null",
        "{}",
        ' {"id": 1}\n',
        '{"id": 1, "by": {"name": "Ada"}, "lines": [{"sku": "a"}, {"count": 2}]}',
        '{"any": {"what": "ever"}}',  # a field of several types is kept as text
        '{"id": 1, "new": null, "list": [], "by": {"more": {}}}',  # nothing is in them
    ],
)
def test_all_of_it_is_in_the_fields(text: str | None) -> None:
    assert unfit(text, shape_of(ORDER)) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"id": 1', "not JSON"),
        ('{"id": 1} {"id": 2}', "not JSON"),
        ('{"id": 1}, and more', "not JSON"),
        ("{'id': 1}", "not JSON"),
        ("", "not JSON"),
        ('{"a":' * 5000 + "1" + "}" * 5000, "not JSON"),
        ("[1, 2]", "not a JSON object"),
        ("7", "not a JSON object"),
        ('{"id": 1, "price": 2}', "has a field that was not inferred: 'price'"),
        ('{"ID": 1}', "has a field that was not inferred: 'ID'"),
        ('{"by": {"age": 3}}', "has a field that was not inferred: 'by.age'"),
        ('{"lines": [{}, {"sum": 1}]}', "has a field that was not inferred: 'lines.sum'"),
    ],
)
def test_what_would_be_lost_is_named(text: str, why: str) -> None:
    assert unfit(text, shape_of(ORDER)) == why


def test_names_that_differ_in_case_alone_are_found() -> None:
    twice = StructType([StructField("sku", StringType()), StructField("SKU", StringType())])
    order = StructType([StructField("id", LongType()), StructField("lines", ArrayType(twice))])
    assert alike(shape_of(order)) == ("sku", "SKU")
    assert alike(shape_of(ORDER)) is None
