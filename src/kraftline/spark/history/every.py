"""All history tables of a build, from what was staged."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame

from kraftline.lake.tables import TABLES
from kraftline.spark.history import brokers, configs, partitions, topics
from kraftline.spark.history.acls import acl_events
from kraftline.spark.history.changes import changes
from kraftline.spark.history.client_quotas import quota_events
from kraftline.spark.history.controllers import controller_events
from kraftline.spark.history.delegation_tokens import token_events
from kraftline.spark.history.features import feature_events
from kraftline.spark.history.health import health
from kraftline.spark.history.min_isr import with_min_isr
from kraftline.spark.history.producer_ids import producer_id_events
from kraftline.spark.history.scram import scram_events
from kraftline.spark.history.staged import Keep, OpenRows, Staged
from kraftline.spark.history.validity import Repeat, history_rows


def history_tables(
    records: DataFrame, legs: DataFrame, open_rows: OpenRows, keep: Keep = DataFrame.persist
) -> dict[str, DataFrame]:
    """The rows of every history table, `health` and `changes` for the clusters in `legs`, made
    when they are written.

    `records` are newly staged; of a leg that goes on they must begin with the Begin of a
    transaction that was open when it was built last. `open_rows` gives the rows of a table that
    were open then: they come out again, closed or still open. `keep` is given what several tables
    are made of; whoever persists it lets it go when all are written.
    """
    staged = Staged(records, legs, open_rows, keep)
    topic_events = topics.topic_events(staged)
    bare = keep(topics.lives(topic_events, legs))
    config_events = keep(configs.config_events(staged, bare))
    lives = keep(with_min_isr(bare, configs.config_rows(config_events, legs)))
    steps = keep(partitions.partition_steps(staged, lives))
    broker_events = keep(brokers.broker_events(staged))
    events = {
        "topics": topic_events,
        "brokers": broker_events,
        "controllers": controller_events(staged),
        "configs": config_events,
        "acls": acl_events(staged),
        "client_quotas": quota_events(staged),
        "scram": scram_events(staged),
        "features": feature_events(staged),
        "producer_ids": producer_id_events(staged),
        "delegation_tokens": token_events(staged),
    }
    taken = {**events, "features": events["features"].where("taken")}
    made = {
        name: history_rows(found, legs, TABLES[name], _REPEATS.get(name, Repeat.SAME_IF_EQUAL))
        for name, found in taken.items()
    }
    made["partitions"] = partitions.partitions(steps, legs)
    return {
        **made,
        "health": health(staged, steps, lives, broker_events),
        "changes": changes(staged, steps, lives, events, made),
    }


# What is kept of SCRAM credentials does not tell whether they are others.
_REPEATS: Final = {"scram": Repeat.NEW}
