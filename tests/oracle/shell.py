"""Kafka's own shell for metadata logs and snapshots."""

from __future__ import annotations

from pathlib import Path

from tests.oracle.java import run

_TRIES = 5


def listed(file: Path, path: str) -> set[str]:
    """The names that `ls` prints. On a busy machine the shell may look before it has read the
    file, and finds nothing: it is asked again."""
    said = ""
    for _ in range(_TRIES):
        arguments = ["--snapshot", str(file), "ls", path]
        said = run("org.apache.kafka.shell.MetadataShell", arguments)
        if said.split():
            break
    return set(said.split())
