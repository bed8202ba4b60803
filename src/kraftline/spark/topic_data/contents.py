"""Keys and values as bytes, as text, or as typed JSON.

As text or JSON, a column is joined by `…_error`, why a record's bytes are not that, and by
`…_bytes`, which then keeps them: nothing is lost. JSON becomes a struct whose fields are those that
Spark infers from a sample of every split; a record that does not fit it, or has more than these, is
such an error too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import msgspec
import pyarrow as pa

from kraftline.errors import KraftlineError
from kraftline.spark.topic_data.json_shape import decoded, shape_of, unfit

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

FORMS: Final = ("bytes", "text", "json")
_SAMPLE: Final = 20_000  # records from which the fields of JSON are inferred
_CORRUPT: Final = "_kraftline_corrupt"  # a column beside the fields, so none of their names


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
    from pyspark.sql.pandas.functions import arrow_udf
    from pyspark.sql.types import StringType, StructField, StructType

    whole = StructType([*fields, StructField(_CORRUPT, StringType())])
    how = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    parsed = F.from_json(text, whole, how)
    shape = shape_of(fields)

    def reasons(texts: pa.Array) -> pa.Array:
        return pa.array([unfit(each, shape) for each in texts.to_pylist()], pa.string())

    # Its stubs want a kind of UDF, which it warns of: hints say it.
    why = arrow_udf(reasons, "string")  # type: ignore[call-overload]
    nothing = text.rlike(r"^\s*null\s*$")
    is_corrupt = ~nothing & parsed[_CORRUPT].isNotNull()
    corrupt = F.when(is_corrupt, F.lit("a field is of another type than was inferred"))
    content = F.when(~nothing, parsed.dropFields(_CORRUPT))
    return content, F.coalesce(why(text), corrupt)


def inferred(frame: DataFrame, column: str) -> StructType:
    """The fields of the JSON objects in a column, by a sample of every split."""
    from pyspark.sql.types import StructType

    texts = frame.select(column)
    share = max(20, _SAMPLE // max(texts.rdd.getNumPartitions(), 1))

    def first(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        left = share
        for batch in batches:
            found = [_as_object(each) for each in batch.column(0).to_pylist()[:left]]
            yield pa.RecordBatch.from_arrays([pa.array(found, pa.string())], ["text"])
            left -= len(found)
            if left <= 0:
                return

    sample = texts.mapInArrow(first, "text string").toArrow().column(0)
    lines = sample.drop_null().to_pylist()
    fields = _fields_of(frame.sparkSession, lines) if lines else StructType()
    if not len(fields):
        raise KraftlineError(
            f"no {column} of {len(sample)} that were looked at is a JSON object with anything in "
            f"it; give --{column} text, or bytes"
        )
    return fields


def _fields_of(spark: SparkSession, lines: list[str]) -> StructType:
    """What Spark infers; `id` and `ID` are two fields."""
    setting = "spark.sql.caseSensitive"
    before = spark.conf.get(setting, "false")
    spark.conf.set(setting, "true")
    try:
        reader = spark.read.option("columnNameOfCorruptRecord", _CORRUPT)
        return reader.json(spark.sparkContext.parallelize(lines, 2)).schema
    finally:
        spark.conf.set(setting, before or "false")


def _as_object(raw: bytes | None) -> str | None:
    """A JSON object, each field once; None of anything else."""
    try:
        value = None if raw is None else decoded(raw)
    except ValueError:
        return None
    return msgspec.json.encode(value).decode() if isinstance(value, dict) else None
