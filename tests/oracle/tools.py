"""Kafka's command line tools, many in one JVM."""

from __future__ import annotations

from typing import cast

from tests.oracle.java import JavaFailed
from tests.oracle.lines import LineProgram


class KafkaTools(LineProgram):
    """`call("TopicCommand", "--list", ...)`; classes without a package are of Kafka's tools."""

    main = "Tools"

    def call(self, name: str, *arguments: str) -> str:
        """What the tool printed; JavaFailed where it ended with an error."""
        full = name if "." in name else f"org.apache.kafka.tools.{name}"
        answer = self.ask({"class": full, "args": list(arguments)})
        if answer["code"] != 0:
            raise JavaFailed(f"{full} ended with {answer['code']}:\n{answer['out']}{answer['err']}")
        return cast(str, answer["out"])
