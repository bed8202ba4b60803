"""Who has SCRAM credentials, and since when: never the secrets."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from kraftline.metadata.words.security import MECHANISMS
from kraftline.spark.history.codes import name_of
from kraftline.spark.history.entities import Said
from kraftline.spark.history.staged import fields


def scram() -> Said:
    def whose(record: Column) -> dict[str, Column]:
        return {"user": record["name"], "mechanism": name_of(record["mechanism"], MECHANISMS)}

    found = fields("USER_SCRAM_CREDENTIAL_RECORD")
    gone = fields("REMOVE_USER_SCRAM_CREDENTIAL_RECORD")
    return {
        "USER_SCRAM_CREDENTIAL_RECORD": (
            F.lit(True),
            {**whose(found), "iterations": found["iterations"]},
        ),
        "REMOVE_USER_SCRAM_CREDENTIAL_RECORD": (F.lit(False), whose(gone)),
    }
