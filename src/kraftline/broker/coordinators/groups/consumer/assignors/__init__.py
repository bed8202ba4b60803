"""Which member gets which partitions: Kafka's assignors, by name.

The same members and topics give the same assignment as in Kafka, to the partition: a group that
moves from one to the other stays where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from kraftline.broker.coordinators.groups.consumer.assignors import by_range, uniform
from kraftline.broker.coordinators.groups.consumer.assignors.task import Assigned, Task

Assignor: TypeAlias = Callable[[Task], dict[str, Assigned]]

ASSIGNORS: Final[Mapping[str, Assignor]] = {
    "uniform": uniform.assign,
    "range": by_range.assign,
}
