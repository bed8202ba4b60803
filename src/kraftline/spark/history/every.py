"""All history tables of a build, from what was staged."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame

from kraftline.spark.history import brokers, configs, partitions
from kraftline.spark.history.acls import acls
from kraftline.spark.history.changes import Found, changes
from kraftline.spark.history.client_quotas import client_quotas
from kraftline.spark.history.controllers import controllers
from kraftline.spark.history.delegation_tokens import delegation_tokens
from kraftline.spark.history.entities import (
    entities,
    entity_rows,
    said_events,
    shaped,
    table_of,
    unpacked,
)
from kraftline.spark.history.features import features
from kraftline.spark.history.health import health
from kraftline.spark.history.min_isr import with_min_isr
from kraftline.spark.history.producer_ids import producer_ids
from kraftline.spark.history.scram import scram
from kraftline.spark.history.staged import Keep, OpenRows, Staged, checkpointed
from kraftline.spark.history.topics import lives, topic_events, topics


def history_tables(
    records: DataFrame, legs: DataFrame, open_rows: OpenRows, keep: Keep = checkpointed
) -> dict[str, DataFrame]:
    """The rows of every history table, `health` and `changes` for the clusters in `legs`, made
    when they are written.

    `records` are newly staged; of a leg that goes on they must begin with the Begin of a
    transaction that was open when it was built last. `open_rows` gives the rows of a table that
    were open then: they come out again, closed or still open. `keep` is given what several tables
    are made of; whoever persists it lets it go when all are written.
    """
    staged = Staged(records, legs, open_rows, keep)
    bare = keep(lives(topic_events(staged), legs))
    broker_events = keep(brokers.broker_events(staged))
    config_events = keep(configs.config_events(staged, bare))
    found = keep(
        entities(
            said_events(staged, {name: said() for name, said in _SAID.items()}),
            shaped("brokers", broker_events),
            shaped("configs", config_events),
        )
    )
    rows = keep(entity_rows(found, legs))
    guarded = keep(with_min_isr(bare, unpacked(rows, "configs")))
    steps = keep(partitions.partition_steps(staged, guarded))
    told = Found(found, rows, steps, guarded, broker_events, config_events)
    return {
        **{name: table_of(rows, name) for name in (*_SAID, "brokers", "configs")},
        "partitions": partitions.partitions(steps, legs),
        "health": health(staged, steps, guarded, broker_events),
        "changes": changes(staged, told),
    }


# Tables whose records say all there is to say of a thing.
_SAID: Final = {
    "topics": topics,
    "controllers": controllers,
    "acls": acls,
    "client_quotas": client_quotas,
    "scram": scram,
    "features": features,
    "producer_ids": producer_ids,
    "delegation_tokens": delegation_tokens,
}
