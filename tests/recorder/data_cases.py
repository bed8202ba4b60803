"""Odd forms of requests about partitions, which clients do not send and Kafka answers all the same.

Those who answer these APIs have tests of their own; here is what fits no client's story.
"""

from __future__ import annotations

from typing import Final

from kraftline.schema.api.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.recorder.any_request import batch
from tests.recorder.cases import Case, always

PRODUCE: Final = 0


def _produced(name: str, *partitions: int) -> TopicProduceData:
    return TopicProduceData(
        name=name,
        partition_data=tuple(PartitionProduceData(index=n, records=batch()) for n in partitions),
    )


CASES: Final = (
    Case(
        "produce to a topic that is named twice",
        PRODUCE,
        range(3, 13),
        always(
            ProduceRequest(
                acks=-1,
                timeout_ms=5000,
                topic_data=(_produced("three", 0, 7), _produced("one", 0), _produced("three", 1)),
            )
        ),
    ),
    Case(
        "produce nothing",
        PRODUCE,
        range(3, 13),
        always(
            ProduceRequest(
                acks=1, timeout_ms=5000, topic_data=(_produced("three"), _produced("nowhere"))
            )
        ),
    ),
)
