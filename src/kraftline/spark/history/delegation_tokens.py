"""Delegation tokens by their id; the secret is derived by brokers and in no record."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from kraftline.spark.history.entities import Said
from kraftline.spark.history.staged import fields

# What lies beyond is no time.
_LAST_MS: Final = (1 << 63) // 1000 - 1


def delegation_tokens() -> Said:
    token = fields("DELEGATION_TOKEN_RECORD")
    columns = {
        "token_id": token["token_id"],
        "owner": token["owner"],
        "requester": token["requester"],
        "issue_time": _time(token["issue_timestamp"]),
        "expiration_time": _time(token["expiration_timestamp"]),
        "max_time": _time(token["max_timestamp"]),
        "renewers": token["renewers"],
    }
    who = F.array_append(F.array_append(token["renewers"], token["owner"]), token["requester"])
    nameless = F.exists(who, lambda each: ~each.contains(":"))
    gone = {"token_id": fields("REMOVE_DELEGATION_TOKEN_RECORD")["token_id"]}
    return {
        # Null: no node would take it, and all stays as it was.
        "DELEGATION_TOKEN_RECORD": (F.when(~nameless, F.lit(True)), columns),
        "REMOVE_DELEGATION_TOKEN_RECORD": (F.lit(False), gone),
    }


def _time(ms: Column) -> Column:
    return F.when(ms.between(-_LAST_MS, _LAST_MS), F.timestamp_millis(ms))
