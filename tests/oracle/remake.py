"""Make fixtures again with real Kafka: all of them, or those named on the command line."""

from __future__ import annotations

import importlib
import sys
import time

from tests.oracle.fixture import FIXTURES


def names() -> list[str]:
    """Every fixture folder with a make.py; `images` last, which is made from the others."""
    found = (path.parent.name for path in FIXTURES.glob("*/make.py"))
    return sorted(found, key=lambda name: (name == "images", name))


def main(wanted: list[str]) -> None:
    for name in wanted or names():
        started = time.monotonic()
        importlib.import_module(f"tests.fixtures.{name}.make").main()
        print(f"{name}: {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
