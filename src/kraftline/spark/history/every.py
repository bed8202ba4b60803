"""All history tables of a build, from what was staged."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kraftline.lake import tables
from kraftline.spark.history import brokers, configs, partitions, topics
from kraftline.spark.history.acls import acl_events
from kraftline.spark.history.client_quotas import quota_events
from kraftline.spark.history.controllers import controller_events
from kraftline.spark.history.delegation_tokens import token_events
from kraftline.spark.history.features import feature_events
from kraftline.spark.history.min_isr import with_min_isr
from kraftline.spark.history.producer_ids import producer_id_events
from kraftline.spark.history.scram import scram_events
from kraftline.spark.history.staged import OpenRows, Staged
from kraftline.spark.history.validity import Repeat, history_rows


def history_tables(
    records: DataFrame, legs: DataFrame, open_rows: OpenRows
) -> dict[str, DataFrame]:
    """The rows of every history table, `health` and `changes` for the clusters in `legs`, made
    when they are written.

    `records` are newly staged; of a leg that goes on they must begin with the Begin of a
    transaction that was open when it was built last. `open_rows` gives the rows of a table that
    were open then: they come out again, closed or still open.
    """
    staged = Staged(records, legs, open_rows)
    topic_events = topics.topic_events(staged)
    lives = topics.lives(topic_events, legs)
    config_events = configs.config_events(staged, lives)
    settings = configs.config_rows(config_events, legs)
    steps = partitions.partition_steps(staged, with_min_isr(lives, settings))
    broker_events = brokers.broker_events(staged)
    return {
        "topics": topics.topics(topic_events, legs),
        "partitions": partitions.partitions(steps, legs),
        "brokers": brokers.brokers(broker_events, legs),
        "controllers": history_rows(controller_events(staged), legs, tables.CONTROLLERS),
        "configs": configs.configs(config_events, legs),
        "acls": history_rows(acl_events(staged), legs, tables.ACLS),
        "client_quotas": history_rows(quota_events(staged), legs, tables.CLIENT_QUOTAS),
        "scram": history_rows(scram_events(staged), legs, tables.SCRAM, Repeat.NEW),
        "features": history_rows(
            feature_events(staged).where(F.col("taken")), legs, tables.FEATURES
        ),
        "producer_ids": history_rows(producer_id_events(staged), legs, tables.PRODUCER_IDS),
        "delegation_tokens": history_rows(token_events(staged), legs, tables.DELEGATION_TOKENS),
    }
