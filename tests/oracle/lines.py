"""A Java program that answers one JSON line for each JSON line it is sent."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self, TypeAlias

from tests.oracle.jars import NEWEST
from tests.oracle.java import JavaFailed, command_line

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


class Refused(RuntimeError):
    """The program answered with an error; the message is Kafka's own."""


class LineProgram:
    """One process of a line-based program from `java/`."""

    main: str

    def __init__(self, args: Sequence[str] = (), *, version: str = NEWEST) -> None:
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - lives as long as the process
        self._process = subprocess.Popen(
            command_line(self.main, args, version=version, ours=True, log_level="error"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def ask(self, request: Mapping[str, Json]) -> dict[str, Json]:
        """Send one request; raises `Refused` when the answer is an error."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            self._errors.seek(0)
            raise JavaFailed(f"{self.main} ended:\n{self._errors.read()[-4000:]}")
        answer: dict[str, Json] = json.loads(line)
        if "error" in answer:
            raise Refused(str(answer["error"]))
        return answer

    def close(self) -> None:
        """Close its stdin, which ends it; kill it when it lingers."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._errors.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
