"""Keys and values as bytes, as text, or as typed JSON.

As text or JSON, a column is joined by `…_error`, why a record's bytes are not that, and by
`…_bytes`, which then keeps them: nothing is lost. JSON becomes a struct whose fields are those that
Spark infers from a sample of every split; a record that does not fit it is such an error too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from kraftline.errors import KraftlineError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

FORMS: Final = ("bytes", "text", "json")
_SAMPLE: Final = 20_000  # records from which the fields of JSON are inferred
_CORRUPT: Final = "_corrupt"


def with_content(frame: DataFrame, column: str, form: str) -> DataFrame:
    """The frame with `key` or `value` in another form, and what does not have it beside it."""
    from pyspark.sql import functions as F

    if form == "bytes":
        return frame
    raw = F.col(column)
    text = F.try_validate_utf8(raw.cast("string"))
    broken = F.when(raw.isNotNull() & text.isNull(), F.lit("not UTF-8"))
    content: Column = text
    if form == "json":
        content, unfit = _parsed(text, inferred(frame, column))
        broken = F.coalesce(broken, unfit)
    error, kept = f"{column}_error", f"{column}_bytes"
    names = [
        name
        for each in frame.columns
        for name in ((each, error, kept) if each == column else (each,))
    ]
    staged = frame.withColumn(error, broken)
    staged = staged.withColumn(kept, F.when(F.col(error).isNotNull(), raw))
    staged = staged.withColumn(column, F.when(F.col(error).isNull(), content))
    return staged.select(*names)


def _parsed(text: Column, fields: StructType) -> tuple[Column, Column]:
    """The struct in a text, and why there is none."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType, StructField, StructType

    shape = StructType([*fields, StructField(_CORRUPT, StringType())])
    how = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    parsed = F.from_json(text, shape, how)
    nothing = F.trim(text) == "null"
    unfit = F.when(
        text.isNotNull() & ~nothing & (parsed.isNull() | parsed[_CORRUPT].isNotNull()),
        F.lit("not JSON with the fields that were inferred"),
    )
    return F.when(~nothing, parsed.dropFields(_CORRUPT)), unfit


def inferred(frame: DataFrame, column: str) -> StructType:
    """The fields of the JSON objects in a column, by a sample of every split."""
    from pyspark.sql.types import StructType

    spark = frame.sparkSession
    texts = frame.select(column)
    share = max(20, _SAMPLE // max(texts.rdd.getNumPartitions(), 1))

    def first(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        left = share
        for batch in batches:
            found = [_as_text(each) for each in batch.column(0).to_pylist()[:left]]
            yield pa.RecordBatch.from_arrays([pa.array(found, pa.string())], ["text"])
            left -= len(found)
            if left <= 0:
                return

    sample = texts.mapInArrow(first, "text string").where("text is not null").toArrow()
    lines = sample.column(0).to_pylist()
    shape = spark.read.json(spark.sparkContext.parallelize(lines, 2)).schema if lines else None
    if shape is None or not set(shape.fieldNames()) - {"_corrupt_record"}:
        raise KraftlineError(
            f"no {column} of {len(lines)} that were looked at is a JSON object; "
            f"give --{column} text, or bytes"
        )
    return StructType([field for field in shape if field.name != "_corrupt_record"])


def _as_text(raw: bytes | None) -> str | None:
    try:
        return None if raw is None else raw.decode()
    except UnicodeDecodeError:
        return None
