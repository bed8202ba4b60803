"""Kafka's own assignors, hashes and regular expressions, asked line by line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from kraftline.broker.coordinators.groups.consumer.assignors.task import Assigned, Task
from kraftline.metadata.write_options import Versioned
from kraftline.schema.metadata.frame import encode_record
from kraftline.schema.uuids import Uuid
from tests.oracle.lines import LineProgram


class GroupDecisions(LineProgram):
    main = "GroupDecisions"

    def assign(self, assignor: str, task: Task) -> dict[str, Assigned]:
        answer = self.ask(
            {
                "op": "assign",
                "assignor": assignor,
                "even": task.is_even,
                "topics": {str(topic): count for topic, count in task.partitions.items()},
                "members": [
                    {
                        "id": id,
                        "instance": wish.instance_id,
                        "topics": [str(topic) for topic in wish.topics],
                        "assigned": {
                            str(topic): [*sorted(partitions)]
                            for topic, partitions in wish.assigned.items()
                        },
                    }
                    for id, wish in task.members.items()
                ],
            }
        )
        members = cast("Mapping[str, Mapping[str, list[int]]]", answer["members"])
        return {
            member: {Uuid.parse(topic): frozenset(each) for topic, each in assigned.items()}
            for member, assigned in members.items()
        }

    def hashes(self, records: Iterable[Versioned], topics: list[str]) -> tuple[dict[str, int], int]:
        """Of each topic, and of all together."""
        answer = self.ask(
            {
                "op": "hash",
                "records": [encode_record(*each).hex() for each in records],
                "topics": [*topics],
            }
        )
        return cast("dict[str, int]", answer["topics"]), cast(int, answer["group"])

    def match(self, regex: str, texts: list[str]) -> list[str] | str:
        """What it matches as a whole; or what is wrong with it."""
        answer = self.ask({"op": "match", "regex": regex, "texts": [*texts]})
        if "invalid" in answer:
            return str(answer["invalid"])
        return cast("list[str]", answer["matched"])
