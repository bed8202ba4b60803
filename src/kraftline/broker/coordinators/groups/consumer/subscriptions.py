"""What the members of a group subscribe to together: topics, by name and by regular expression.

A regular expression counts once for each topic that it was found to match, however many members
have it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from kraftline.broker.coordinators.groups.consumer.member import Member


class Resolved(msgspec.Struct, frozen=True, gc=False):
    """The topics that a regular expression matches in the metadata of an offset, `version`."""

    topics: frozenset[str] = frozenset()
    version: int = 0
    resolved_at: int = 0


class Subscriptions:
    """`topics` counts who wants a topic, by name and by expression; `regexes` who has an
    expression."""

    __slots__ = ("regexes", "topics")

    def __init__(self) -> None:
        self.topics: dict[str, tuple[int, int]] = {}
        self.regexes: dict[str, int] = {}

    def copy(self) -> Subscriptions:
        made = Subscriptions()
        made.topics = dict(self.topics)
        made.regexes = dict(self.regexes)
        return made

    def add_member(self, member: Member) -> None:
        self.add_names(member.topics)
        if member.regex:
            self.regexes[member.regex] = self.regexes.get(member.regex, 0) + 1

    def remove_member(self, member: Member) -> None:
        self.add_names(member.topics, -1)
        if member.regex and member.regex in self.regexes:
            self.regexes[member.regex] -= 1
            if not self.regexes[member.regex]:
                del self.regexes[member.regex]

    def add_names(self, topics: Iterable[str], count: int = 1) -> None:
        for topic in topics:
            by_name, by_regex = self.topics.get(topic, (0, 0))
            self._put(topic, by_name + count, by_regex)

    def add_matches(self, topics: Iterable[str], count: int = 1) -> None:
        for topic in topics:
            by_name, by_regex = self.topics.get(topic, (0, 0))
            self._put(topic, by_name, by_regex + count)

    def is_even(self, members: int) -> bool:
        """Do so many members all subscribe to the same topics?"""
        if not self.regexes:
            return all(by_name == members for by_name, _ in self.topics.values())
        if next(iter(self.regexes.values())) != members:
            return False
        return all(by_regex == 1 and by_name <= 0 for by_name, by_regex in self.topics.values())

    def _put(self, topic: str, by_name: int, by_regex: int) -> None:
        if by_name > 0 or by_regex > 0:
            self.topics[topic] = by_name, by_regex
        else:
            self.topics.pop(topic, None)


def topics_of(member: Member, resolved: Mapping[str, Resolved]) -> frozenset[str]:
    """The names of what a member subscribes to, either way."""
    if not member.regex:
        return member.topics
    matched = resolved.get(member.regex)
    return member.topics if matched is None else member.topics | matched.topics
