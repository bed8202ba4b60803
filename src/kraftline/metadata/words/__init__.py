"""Says a change of the cluster as a person would: every tool that speaks of changes uses it.

Each function takes how something was and how it is, and gives `Change`s: a code for programs and
a sentence for people. They know nothing of logs, so a story and a difference read alike.
"""

from __future__ import annotations

from kraftline.metadata.words.change import Change
from kraftline.metadata.words.log import log_change, transaction_change
from kraftline.metadata.words.nodes import broker_changes, controller_changes, endpoints
from kraftline.metadata.words.partitions import Why, partition_changes
from kraftline.metadata.words.security import acl_changes, acl_text, scram_change, token_change
from kraftline.metadata.words.settings import (
    config_change,
    entity_name,
    feature_change,
    producer_ids_change,
    quota_change,
    quota_value,
    resource_name,
)
from kraftline.metadata.words.topics import (
    elr_cleared,
    partitions_added,
    partitions_removed,
    topic_created,
    topic_deleted,
)
from kraftline.metadata.words.voters import voter_changes, voter_endpoints

__all__ = [
    "Change",
    "Why",
    "acl_changes",
    "acl_text",
    "broker_changes",
    "config_change",
    "controller_changes",
    "elr_cleared",
    "endpoints",
    "entity_name",
    "feature_change",
    "log_change",
    "partition_changes",
    "partitions_added",
    "partitions_removed",
    "producer_ids_change",
    "quota_change",
    "quota_value",
    "resource_name",
    "scram_change",
    "token_change",
    "topic_created",
    "topic_deleted",
    "transaction_change",
    "voter_changes",
    "voter_endpoints",
]
