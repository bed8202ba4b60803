"""The numbers of compaction, by the names that Kafka's cleaner has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kraftline.broker.cleaning import CleanerThreads
from kraftline.operation.exposition import Family, Sample, one
from kraftline.storage.cleaner.cleaner import Cleaner
from kraftline.storage.log import Logs
from kraftline.storage.log.partition_log import wall_clock

_CLEANER: Final = "kafka_log_logcleaner_"
_MANAGER: Final = "kafka_log_logcleanermanager_"


def cleaner_metrics(threads: CleanerThreads, directories: tuple[Logs, ...]) -> Iterator[Family]:
    """Nothing where the broker does not compact."""
    cleaner = threads.cleaner
    if cleaner is None:
        return
    last = list(cleaner.last.values())
    read, written = sum(each.bytes_read for each in last), sum(each.bytes_written for each in last)
    for name, help, value in (
        (
            "max_buffer_utilization_percent",
            "How full the map of keys was in a thread's last cleaning.",
            int(100 * max((each.map_utilization for each in last), default=0.0)),
        ),
        (
            "cleaner_recopy_percent",
            "How much of the bytes the last cleanings kept.",
            int(100 * written / max(read, 1)),
        ),
        (
            "max_clean_time_secs",
            "How long a thread's last cleaning took.",
            int(max((each.seconds for each in last), default=0.0)),
        ),
        (
            "max_compaction_delay_secs",
            "How long ago max.compaction.lag.ms wanted a log cleaned.",
            cleaner.delay_ms // 1000,
        ),
        ("deadthreadcount", "Cleaner threads that failed.", threads.dead),
    ):
        yield one(_CLEANER + name, "gauge", help, value)
    yield one(
        _MANAGER + "max_dirty_percent",
        "gauge",
        "How dirty the dirtiest log is.",
        int(100 * cleaner.dirtiest),
    )
    yield one(
        _MANAGER + "time_since_last_run_ms",
        "gauge",
        "When a thread looked for something to clean.",
        max(wall_clock() - cleaner.last_round, 0),
    )
    yield from _uncleanable(cleaner, directories)


def _uncleanable(cleaner: Cleaner, directories: tuple[Logs, ...]) -> Iterator[Family]:
    """By log directory."""
    logs = tuple(cleaner.uncleanable)
    yield Family(
        _MANAGER + "uncleanable_partitions_count",
        "gauge",
        "Logs that are not compacted any more, because something is wrong with them.",
        [
            Sample(sum(log.disk is each.disk for log in logs), {"logdirectory": each.path})
            for each in directories
        ],
    )
    yield Family(
        _MANAGER + "uncleanable_bytes",
        "gauge",
        "What would be cleaned of these.",
        [
            Sample(cleaner.uncleanable_bytes(each), {"logdirectory": each.path})
            for each in directories
        ],
    )
