"""Why a replica lost its place or got it back: from records that took effect together with that,
or from the state of its broker just before."""

from __future__ import annotations

from collections.abc import Iterable

from kraftline.inspect.cluster.state import State
from kraftline.metadata.loader import Placed
from kraftline.schema.metadata.broker_registration_change_record import (
    BrokerRegistrationChangeRecord,
)
from kraftline.schema.metadata.fence_broker_record import FenceBrokerRecord
from kraftline.schema.metadata.register_broker_record import RegisterBrokerRecord
from kraftline.schema.metadata.unfence_broker_record import UnfenceBrokerRecord
from kraftline.schema.metadata.unregister_broker_record import UnregisterBrokerRecord
from kraftline.schema.uuids import Uuid

_ABOUT_BROKERS = (
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
    FenceBrokerRecord,
    UnfenceBrokerRecord,
    BrokerRegistrationChangeRecord,
)


class Causes:
    """What is known of brokers while one effect is told.

    The whole effect is looked at first: after an unclean stop the partitions' changes come before
    the registration that they follow from.
    """

    def __init__(self, state: State, records: Iterable[Placed]) -> None:
        self._state = state
        self._out: dict[int, str] = {}
        self._back: dict[int, str] = {}
        for record in records:
            if isinstance(record.message, _ABOUT_BROKERS):
                self._look(record)

    def why(self, broker: int, back: bool, directory: Uuid | None) -> str | None:
        if back:
            return self._back.get(broker)
        known = self._out.get(broker)
        if known is not None:
            return known
        found = self._state.broker(broker)
        if found is None:
            return f"broker {broker} is not registered"
        if found.in_controlled_shutdown:
            return f"broker {broker} is shutting down"
        if found.fenced:
            return f"broker {broker} is fenced"
        if directory is not None and not found.has_online_directory(directory):
            return f"its directory on broker {broker} is offline"
        return None

    def _look(self, record: Placed) -> None:
        match record.message:
            case RegisterBrokerRecord(broker_id=broker, incarnation_id=incarnation):
                before = self._state.broker(broker)
                if before is not None and before.incarnation_id != incarnation:
                    self._out[broker] = f"broker {broker} restarted without a clean stop"
            case UnregisterBrokerRecord(broker_id=broker):
                self._out[broker] = f"broker {broker} was unregistered"
            case FenceBrokerRecord(id=broker):
                self._fenced(broker)
            case UnfenceBrokerRecord(id=broker):
                self._back[broker] = f"broker {broker} was unfenced"
            case BrokerRegistrationChangeRecord(broker_id=broker) as change:
                if change.in_controlled_shutdown == 1:
                    self._out[broker] = f"broker {broker} began a controlled shutdown"
                if change.fenced == 1:
                    self._fenced(broker)
                elif change.fenced == -1:
                    self._back[broker] = f"broker {broker} was unfenced"
                before = self._state.broker(broker)
                if change.log_dirs and before is not None:
                    lost = set(before.directories) - set(change.log_dirs)
                    if lost:
                        self._out.setdefault(broker, f"broker {broker} lost a directory")

    def _fenced(self, broker: int) -> None:
        self._out[broker] = f"broker {broker} was fenced"
