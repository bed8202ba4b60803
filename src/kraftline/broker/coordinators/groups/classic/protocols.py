"""Which protocol the members of a classic group take part in, and what they read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Final

from kraftline.broker.coordinators.groups.classic.member import Member
from kraftline.controller.java_order import in_string_order
from kraftline.errors import BadData
from kraftline.schema.codec import reader
from kraftline.schema.coordinator.consumer_protocol import ConsumerProtocolSubscription
from kraftline.schema.wire import Reader

CONSUMER: Final = "consumer"


def elected(members: Collection[Member], supported: Counter[str]) -> str:
    """The protocol that all can take part in and most like best. Among those with as many votes
    it is the first as Kafka's map of votes has them."""
    candidates = {name for name, count in supported.items() if count == len(members)}
    votes: Counter[str] = Counter()
    for member in members:
        liked = next(each.name for each in member.protocols if each.name in candidates)
        votes[liked] += 1
    most = max(votes.values())
    return next(name for name in in_string_order(votes) if votes[name] == most)


def subscribed_topics(members: Collection[Member], protocol: str) -> frozenset[str] | None:
    """All topics that consumers name in their metadata; None where one does not make sense."""
    read = reader(ConsumerProtocolSubscription, 0)
    topics: set[str] = set()
    for member in members:
        source = Reader(member.metadata(protocol))
        try:
            source.int16()  # a version; each begins with what version 0 has
            topics.update(read(source).topics)
        except BadData:
            return None
    return frozenset(topics)
