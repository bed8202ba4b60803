"""What the numbers were measured on."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks.rival import VERSION, java_version

CHECKOUT = Path(__file__).parent.parent


def describe() -> dict[str, str]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "CPU": f"{_cpu()}, {os.cpu_count()} cores",
        "memory": f"{memory / 2**30:.0f} GiB",
        "system": f"{_system()}, Linux {platform.release()}",
        "Python": f"{platform.python_version()}, pyarrow {version('pyarrow')}",
        "Java": java_version(),
        "Kafka": VERSION,
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "commit": _commit(),
        "load before the run": f"{os.getloadavg()[0]:.1f} processes (1 minute)",
    }


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def _system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        return platform.system()


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"
