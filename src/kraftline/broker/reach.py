"""Which brokers the clients of one listener can reach, and what that means for a partition."""

from __future__ import annotations

from typing import Final

from kraftline.metadata.image.cluster import ClusterImage
from kraftline.metadata.partition import Directories, PartitionRegistration, Replicas
from kraftline.metadata.registrations import BrokerRegistration
from kraftline.schema.uuids import Uuid

NOBODY: Final = -1
_KEPT: Final = 20_000  # lists of replicas whose offline ones are remembered


class Reach:
    """Made anew when the cluster changes. Equal if no partition is told differently."""

    def __init__(self, cluster: ClusterImage, listener: str) -> None:
        self.cluster = cluster
        # Those that clients of this listener have an address of, be they fenced or not.
        self._addressed: dict[int, BrokerRegistration] = {
            broker.id: broker
            for broker in cluster.brokers.values()
            if broker.listener(listener) is not None
        }
        self._states: dict[int, tuple[bool, bool, tuple[Uuid, ...]]] = {
            broker.id: (broker.fenced, broker.id in self._addressed, broker.directories)
            for broker in cluster.brokers.values()
        }
        self._offline: dict[tuple[Replicas, Directories], Replicas] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reach) and self._states == other._states

    def leader(self, broker: int) -> int:
        """A leader as clients are told: a fenced one too, if they could reach it otherwise."""
        return broker if broker in self._addressed else NOBODY

    def is_registered(self, broker: int) -> bool:
        return broker in self._states

    def is_alive(self, broker: int) -> bool:
        found = self._addressed.get(broker)
        return found is not None and not found.fenced

    def alive(self, replicas: Replicas) -> Replicas:
        return tuple([each for each in replicas if self.is_alive(each)])

    def offline(self, partition: PartitionRegistration) -> Replicas:
        """Replicas on brokers that are away, fenced or without this listener, and in directories
        that are offline."""
        key = (partition.replicas, partition.directories)
        found = self._offline.get(key)
        if found is None:
            if len(self._offline) >= _KEPT:
                self._offline.clear()
            found = self._offline[key] = tuple(
                [each for each in partition.replicas if self._is_offline(partition, each)]
            )
        return found

    def _is_offline(self, partition: PartitionRegistration, replica: int) -> bool:
        if not self.is_alive(replica):
            return True
        directory = partition.directory(replica)
        return directory is None or not self._addressed[replica].has_online_directory(directory)
