"""Delegation tokens by their id; the secret is derived by brokers and in no record."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kraftline.spark.history.staged import Staged, united


def token_events(staged: Staged) -> DataFrame:
    """Events with the columns of the table, and `there`."""
    r = F.col("r")
    who = F.array_append(F.array_append(r["renewers"], r["owner"]), r["requester"])
    nameless = F.exists(who, lambda each: ~each.contains(":"))
    there = staged.of(
        "DELEGATION_TOKEN_RECORD",
        token_id=F.when(~nameless, r["token_id"]),
        owner=r["owner"],
        requester=r["requester"],
        issue_time=_time(r["issue_timestamp"]),
        expiration_time=_time(r["expiration_timestamp"]),
        max_time=_time(r["max_timestamp"]),
        renewers=r["renewers"],
        there=F.lit(True),
    ).where(F.col("token_id").isNotNull())
    columns = [name for name in there.columns[-8:] if name != "there"]
    nothing = {name: F.lit(None).cast(there.schema[name].dataType) for name in columns}
    gone = staged.of(
        "REMOVE_DELEGATION_TOKEN_RECORD",
        **{**nothing, "token_id": r["token_id"], "there": F.lit(False)},
    )
    opened = {name: F.col(name) for name in columns}
    return united(there, gone, staged.opened("delegation_tokens", **opened, there=F.lit(True)))


def _time(ms: Column) -> Column:
    return F.timestamp_millis(ms)
