"""Who has SCRAM credentials, and since when: never the secrets."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kraftline.metadata.words.security import MECHANISMS
from kraftline.spark.history.codes import name_of
from kraftline.spark.history.staged import Staged, united


def scram_events(staged: Staged) -> DataFrame:
    """Events with the columns of the table, and `there`."""
    r = F.col("r")
    who = {"user": r["name"], "mechanism": name_of(r["mechanism"], MECHANISMS)}
    opened = {name: F.col(name) for name in ("user", "mechanism", "iterations")}
    return united(
        staged.of(
            "USER_SCRAM_CREDENTIAL_RECORD", **who, iterations=r["iterations"], there=F.lit(True)
        ),
        staged.of(
            "REMOVE_USER_SCRAM_CREDENTIAL_RECORD",
            **who,
            iterations=F.lit(None).cast("int"),
            there=F.lit(False),
        ),
        staged.opened("scram", **opened, there=F.lit(True)),
    )
