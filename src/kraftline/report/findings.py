"""Everything that a report tells, worked out from the tables of one cluster: no words yet."""

from __future__ import annotations

import pyarrow.compute as pc
from msgspec import Struct

from kraftline.report import spans
from kraftline.report.brokers import Brokers, brokers
from kraftline.report.changes import Changes, changes
from kraftline.report.churn import Churn, churn
from kraftline.report.configs import Configs, configs
from kraftline.report.gaps import Gaps, gaps
from kraftline.report.groups import Groups, groups
from kraftline.report.tables import Tables
from kraftline.report.topics import Topics, topics
from kraftline.report.troubles import Troubles, troubles
from kraftline.report.window import Window


class Findings(Struct, frozen=True):
    """`topics_now` and `partitions_now` are counted at the end of the window."""

    cluster: str
    window: Window
    topics_now: int
    partitions_now: int
    brokers: Brokers
    troubles: Troubles
    churn: Churn
    changes: Changes
    topics: Topics
    groups: Groups
    configs: Configs
    gaps: Gaps


def find(cluster: str, tables: Tables, window: Window) -> Findings:
    return Findings(
        cluster=cluster,
        window=window,
        topics_now=_at_end(tables, "topics", window),
        partitions_now=_at_end(tables, "partitions", window),
        brokers=brokers(tables["brokers"], window),
        troubles=troubles(tables["health"], window),
        churn=churn(tables["changes"], window),
        changes=changes(tables["changes"], window),
        topics=topics(tables["topic_sizes"], window),
        groups=groups(tables["group_offsets"], tables["topic_sizes"], window),
        configs=configs(tables["configs"], window),
        gaps=gaps(tables["coverage"], tables["quarantine"], window),
    )


def _at_end(tables: Tables, name: str, window: Window) -> int:
    return pc.sum(spans.within(tables[name], window)["ongoing"]).as_py() or 0
