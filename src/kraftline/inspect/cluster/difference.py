"""The difference between two images, in the words of changes from the first to the second.

It knows nothing of what happened in between: a broker that was fenced and came back is no
difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from kraftline.inspect.history import History
from kraftline.inspect.history.moments import Moment
from kraftline.inspect.history.quorum import Quorum
from kraftline.metadata import words
from kraftline.metadata.features import KRAFT_VERSION, METADATA_VERSION
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.image.configs import TOPIC
from kraftline.metadata.image.topic import TopicImage
from kraftline.metadata.words import Change
from kraftline.schema.uuids import Uuid

K = TypeVar("K")
V = TypeVar("V")


def difference(before: MetadataImage, after: MetadataImage) -> list[Change]:
    """All that is different, part by part and there by name; parts that are shared cost nothing."""
    return list(_all(before, after))


def _all(before: MetadataImage, after: MetadataImage) -> Iterator[Change]:
    if before.features is not after.features:
        yield from _features(before, after)
    if before.cluster is not after.cluster:
        for node, was, now in _pairs(before.cluster.controllers, after.cluster.controllers):
            yield from words.controller_changes(node, was, now)
        for broker, old, new in _pairs(before.cluster.brokers, after.cluster.brokers):
            yield from words.broker_changes(broker, old, new, directly=False)
    if before.topics is not after.topics:
        yield from _topics(before, after)
    yield from _settings(before, after)
    yield from _security(before, after)
    ids = words.producer_ids_change(
        before.producer_ids.next_producer_id, after.producer_ids.next_producer_id
    )
    if ids is not None:
        yield ids


def _features(before: MetadataImage, after: MetadataImage) -> Iterator[Change]:
    was, now = before.features.metadata_version, after.features.metadata_version
    version = words.feature_change(
        METADATA_VERSION, None if was is None else was.level, None if now is None else now.level
    )
    if version is not None:
        yield version
    for name, old, new in _pairs(before.features.levels, after.features.levels):
        change = words.feature_change(name, old, new)
        if change is not None:
            yield change


def _topics(before: MetadataImage, after: MetadataImage) -> Iterator[Change]:
    why = _Why(before, after).why
    changed = [
        (was, now)
        for _, was, now in _unordered(before.topics.by_id, after.topics.by_id)
        if was is not now
    ]
    # One that was deleted and made anew has another id: first the end, then the beginning.
    for was, now in sorted(changed, key=_topic_order):
        if now is None:
            assert was is not None
            yield words.topic_deleted(was.name, was.id, dict(was.items()))
        elif was is None:
            configs = after.configs.of(TOPIC, now.name)
            yield words.topic_created(now.name, now.id, dict(now.items()), configs)
        else:
            yield from _topic(was, now, why)


def _topic_order(pair: tuple[TopicImage | None, TopicImage | None]) -> tuple[str, bool, bytes]:
    was, now = pair
    topic = now or was
    assert topic is not None
    return topic.name, now is not None, topic.id


def _topic(was: TopicImage, now: TopicImage, why: words.Why) -> Iterator[Change]:
    old, new = dict(was.items()), dict(now.items())
    added = {number: new[number] for number in new if number not in old}
    if added:
        yield words.partitions_added(now.name, added, len(new))
    removed = {number: old[number] for number in old if number not in new}
    if removed:
        yield words.partitions_removed(now.name, removed)
    for number, partition in new.items():
        before = old.get(number)
        if before is not None and before is not partition:
            yield from words.partition_changes(now.name, number, before, partition, why)


class _Why:
    """Causes as far as two images tell them: what is different about a broker."""

    def __init__(self, before: MetadataImage, after: MetadataImage) -> None:
        self._before = before.cluster.brokers
        self._after = after.cluster.brokers

    def why(self, broker: int, back: bool, directory: Uuid | None) -> str | None:
        was, now = self._before.get(broker), self._after.get(broker)
        if back:
            return None
        if now is None:
            return (
                f"broker {broker} is not registered"
                if was is None
                else (f"broker {broker} was unregistered")
            )
        if now.in_controlled_shutdown:
            return f"broker {broker} is shutting down"
        if now.fenced:
            return f"broker {broker} is fenced"
        if directory is not None and not now.has_online_directory(directory):
            return f"its directory on broker {broker} is offline"
        if was is not None and was.incarnation_id != now.incarnation_id:
            return f"broker {broker} restarted"
        return None


def _settings(before: MetadataImage, after: MetadataImage) -> Iterator[Change]:
    if before.configs is not after.configs:
        # Configs come and go with their topic, whose change tells of them.
        same = before.topics.ids
        for resource, old, new in _pairs(before.configs.resources, after.configs.resources):
            if resource.type == TOPIC:
                topic = after.topics.ids.get(resource.name)
                if topic != same.get(resource.name):
                    continue
            for key, was, now in _pairs(old or {}, new or {}):
                change = words.config_change(resource, key, was, now)
                if change is not None:
                    yield change
    if before.client_quotas is not after.client_quotas:
        entities = _unordered(before.client_quotas.entities, after.client_quotas.entities)
        for entity, quotas, others in sorted(entities, key=lambda each: str(each[0])):
            for key, limit, other in _pairs(quotas or {}, others or {}):
                change = words.quota_change(entity, key, limit, other)
                if change is not None:
                    yield change


def _security(before: MetadataImage, after: MetadataImage) -> Iterator[Change]:
    if before.acls is not after.acls:
        for _, old, new in _pairs(before.acls.acls, after.acls.acls):
            yield from words.acl_changes(old, new)
    for user, was, now in _pairs(before.scram.credentials, after.scram.credentials):
        change = words.scram_change(user, was, now)
        if change is not None:
            yield change
    for _, token, other in _pairs(before.delegation_tokens.tokens, after.delegation_tokens.tokens):
        change = words.token_change(token, other)
        if change is not None:
            yield change


def _pairs(before: Mapping[K, V], after: Mapping[K, V]) -> Iterator[tuple[K, V | None, V | None]]:
    """What differs, by key in order."""
    yield from sorted(_unordered(before, after), key=lambda each: each[0])  # type: ignore[arg-type, return-value]  # keys of one map are of one kind


def _unordered(
    before: Mapping[K, V], after: Mapping[K, V]
) -> Iterator[tuple[K, V | None, V | None]]:
    if before is after:
        return
    for key, now in after.items():
        was = before.get(key)
        if was is not now and was != now:
            yield key, was, now
    for key, was in before.items():
        if key not in after:
            yield key, was, None


def between(
    history: History, first: Moment, second: Moment, *, quick: bool = False
) -> tuple[MetadataImage, MetadataImage, list[Change]]:
    """The images at two moments and the changes from one to the other.

    Where both are on one leg, the later image is the earlier one moved on, so that what did not
    change is shared and need not be compared.
    """
    (leg, start), (other, end) = history.find(first), history.find(second)
    if leg is not other or quick:
        before, after = history.at(leg, start, quick=quick), history.at(other, end, quick=quick)
    else:
        earlier, later = history.in_order(leg, [min(start, end), max(start, end)])
        before, after = (earlier, later) if start <= end else (later, earlier)
    quorums = history.quorum(leg, start), history.quorum(other, end)
    return before, after, [*quorum_difference(*quorums), *difference(before, after)]


def quorum_difference(before: Quorum, after: Quorum) -> Iterator[Change]:
    """The same of kraft.version and voters, which no image has."""
    version = words.feature_change(KRAFT_VERSION, before.kraft_version, after.kraft_version)
    if version is not None:
        yield version
    yield from words.voter_changes(before.voters, after.voters)
