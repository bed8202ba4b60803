"""What happened to leaders and ISRs, said in Spark: there can be millions of these.

The sentences are those of `metadata.words.partitions`; what it tells of replicas, ELR and
directories is rare and goes through it (`rare.py`). Bookkeeping is left out, as there.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kraftline.metadata.partition import NO_LEADER, RECOVERED, RECOVERING
from kraftline.spark.history.changes.causes import Causes
from kraftline.spark.history.changes.columns import TOLD
from kraftline.spark.history.partitions import CLEAR, WHOLE


def told_of(steps: DataFrame) -> DataFrame:
    """The steps that tell something: of a partition that was there, and not in its creation."""
    created = (F.col("how") == WHOLE) & F.col("unit").eqNullSafe(F.col("began_unit"))
    is_record = F.col("unit").isNotNull() & (F.col("how") != CLEAR)
    return steps.where(F.col("had_before") & is_record & ~created)


def leaders_and_isrs(steps: DataFrame, causes: Causes) -> DataFrame:
    """Rows with the columns of TOLD."""
    moved = F.col("leader") != F.col("before_leader")
    recovery = (F.col("before_recovery") == RECOVERING) | (
        F.col("leader_recovery_state") == RECOVERING
    )
    found = told_of(steps).where(moved | recovery | F.col("before_isr").isNotNull())
    each = F.array_compact(F.array(_leader(), _recovered(), _isr()))
    rows = found.select(
        "cluster_id",
        "leg",
        "offset",
        "unit",
        "at_offset",
        "at_time",
        "epoch",
        "topic",
        "partition",
        F.inline(each),
    )
    told = causes.joined(rows)
    because = F.coalesce(F.concat(F.lit(" because "), F.col("cause")), F.lit(""))
    return told.withColumns(
        {
            "subject": _name(),
            "name": F.lit(None).cast("string"),
            "text": F.concat("head", because, "tail"),
        }
    ).select(*TOLD)


def _said(
    kind: str,
    head: Column,
    *,
    before: Column,
    after: Column,
    broker: Column,
    tail: Column | None = None,
    certain: Column | None = None,
    asks: Column | None = None,
    returned: Column | None = None,
    otherwise: Column | None = None,
) -> Column:
    nothing = F.lit(None)
    asked = F.lit(None).cast("array<int>") if asks is None else asks
    return F.struct(
        F.lit(kind).alias("kind"),
        head.alias("head"),
        (F.lit("") if tail is None else tail).alias("tail"),
        before.alias("before"),
        after.alias("after"),
        broker.cast("int").alias("broker"),
        (nothing if certain is None else certain).cast("string").alias("certain"),
        asked.alias("asks"),
        F.transform(asked, _place).alias("places"),
        (nothing if returned is None else returned).cast("int").alias("returned"),
        (nothing if otherwise is None else otherwise).cast("string").alias("otherwise"),
    )


def _leader() -> Column:
    was, now, name = F.col("before_leader"), F.col("leader"), _name()
    was_text, now_text = was.cast("string"), now.cast("string")
    told = {"before": was_text, "after": now_text}
    unclean = (F.col("leader_recovery_state") == RECOVERING) & F.col("elected") & (now != NO_LEADER)
    preferred = F.get(F.col("replicas"), F.lit(0))
    was_preferred = F.get(F.coalesce(F.col("before")["replicas"], F.col("replicas")), F.lit(0))
    is_back = (now == preferred) & (was != was_preferred)
    return (
        F.when(
            unclean,
            _said(
                "leader.unclean",
                F.concat(
                    F.lit("unclean election: "),
                    name,
                    F.lit(" is led by "),
                    now_text,
                    F.lit(", which was not in sync; records may be lost"),
                ),
                broker=F.when(was != NO_LEADER, was).otherwise(now),
                asks=F.when(was != NO_LEADER, F.array(was)),
                **told,
            ),
        )
        .when(
            (was != now) & (now == NO_LEADER),
            _said(
                "leader.lost",
                F.concat(name, F.lit(" lost its leader "), was_text),
                broker=was,
                asks=F.array(was),
                **told,
            ),
        )
        .when(
            (was != now) & (was == NO_LEADER),
            _said(
                "leader.elected",
                F.concat(name, F.lit(" has a leader again: "), now_text),
                broker=now,
                returned=now,
                **told,
            ),
        )
        .when(
            was != now,
            _said(
                "leader.moved",
                F.concat(
                    F.lit("leader of "), name, F.lit(" moved "), was_text, F.lit(" -> "), now_text
                ),
                broker=was,
                certain=F.when(
                    ~F.array_contains("replicas", was),
                    F.concat(F.lit("broker "), was_text, F.lit(" is no longer a replica")),
                ),
                asks=F.array(was),
                otherwise=F.when(is_back, F.concat(now_text, F.lit(" is the preferred leader"))),
                **told,
            ),
        )
    )


def _recovered() -> Column:
    over = (F.col("before_recovery") == RECOVERING) & (F.col("leader_recovery_state") == RECOVERED)
    return F.when(
        over,
        _said(
            "leader.recovered",
            F.concat(_name(), F.lit(" has recovered from its unclean election")),
            before=F.lit("recovering"),
            after=F.lit("recovered"),
            broker=F.lit(None),
        ),
    )


def _isr() -> Column:
    was, now, name = F.col("before_isr"), F.col("isr"), _name()
    gone, new = F.array_except(was, now), F.array_except(now, was)
    some_gone, some_new = F.size(gone) > 0, F.size(new) > 0
    whole = F.size(F.array_except(F.col("replicas"), now)) == 0
    state = F.concat(
        F.when(whole, F.lit("; all in sync: ")).otherwise(F.lit("; in sync: ")), _numbers(now)
    )
    left = F.array_except(gone, F.col("replicas"))
    are = F.when(
        F.size(left) == 1, F.concat(F.lit("broker "), _numbers(left), F.lit(" is"))
    ).otherwise(F.concat(F.lit("brokers "), _numbers(left), F.lit(" are")))
    told = {"before": _list(was), "after": _list(now), "tail": state}
    # A leader is in sync by definition: that it was elected has been said.
    elected = (F.size(new) == 1) & (F.get(new, F.lit(0)) == F.col("leader"))
    elected = elected & (F.col("leader") != F.col("before_leader"))
    return (
        F.when(
            some_gone & some_new,
            _said(
                "isr.changed",
                F.concat(
                    F.lit("ISR of "),
                    name,
                    F.lit(" changed: "),
                    _numbers(gone),
                    F.lit(" left, "),
                    _numbers(new),
                    F.lit(" joined"),
                ),
                broker=F.get(gone, F.lit(0)),
                **told,
            ),
        )
        .when(
            some_gone,
            _said(
                "isr.shrank",
                F.concat(
                    F.lit("ISR of "), name, F.lit(" shrank: "), _numbers(gone), F.lit(" left")
                ),
                broker=F.get(gone, F.lit(0)),
                certain=F.when(F.size(left) > 0, F.concat(are, F.lit(" no longer a replica"))),
                asks=gone,
                **told,
            ),
        )
        .when(
            some_new & ~elected,
            _said(
                "isr.grew",
                F.concat(
                    F.lit("ISR of "), name, F.lit(" grew: "), _numbers(new), F.lit(" caught up")
                ),
                broker=F.get(new, F.lit(0)),
                **told,
            ),
        )
    )


def _place(broker: Column) -> Column:
    """The directory of a broker's replica: where it is, else where it was."""
    before = F.col("before")

    def of(replicas: Column, directories: Column) -> Column:
        # Position 0 is none, and before the first element there is nothing.
        return F.get(directories, F.array_position(replicas, broker).cast("int") - 1)

    return F.coalesce(
        of(F.col("replicas"), F.col("directories")), of(before["replicas"], before["directories"])
    )


def _name() -> Column:
    return F.concat(F.col("topic"), F.lit("-"), F.col("partition").cast("string"))


def _numbers(brokers: Column) -> Column:
    return F.when(F.size(brokers) == 0, F.lit("none")).otherwise(F.array_join(brokers, ", "))


def _list(brokers: Column) -> Column:
    return F.concat(F.lit("["), F.array_join(brokers, ", "), F.lit("]"))
