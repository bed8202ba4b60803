"""What the process takes of its machine, by the names that all of Prometheus' clients use."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator

from kraftline.operation.exposition import Family, one


def process_metrics() -> Iterator[Family]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    with open("/proc/self/statm", "rb") as file:
        pages = int(file.read().split()[1])
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield one(
        "process_cpu_seconds_total",
        "counter",
        "Processor time in seconds.",
        round(used.ru_utime + used.ru_stime, 3),
    )
    yield one(
        "process_resident_memory_bytes",
        "gauge",
        "Memory in bytes.",
        pages * os.sysconf("SC_PAGE_SIZE"),
    )
    yield one("process_open_fds", "gauge", "Open files.", len(os.listdir("/proc/self/fd")))
    yield one("process_max_fds", "gauge", "Files that may be open.", most)
    yield one(
        "process_start_time_seconds",
        "gauge",
        "When the process began, in seconds since 1970.",
        round(time.time() - age(), 2),
    )


def age() -> float:
    """Seconds since this process began, to the hundredth."""
    with open("/proc/self/stat", "rb") as file:
        ticks = int(file.read().rpartition(b")")[2].split()[19])
    began = ticks / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - began
