"""An index over ACLs, so that a check costs the same however many there are.

For a pattern (a resource's name, or how names begin) and for whom and from where it counts, what is
allowed and what is denied are the bits of two numbers. A check looks up few patterns: the name
itself, `*`, and one beginning of the name for each length that prefixed patterns have.

What is allowed includes what it implies: who may read, write, delete or alter may describe, and who
may alter configs may describe them. A denial implies nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import msgspec

from kraftline.metadata.access import EVERYBODY, WILDCARD, Operation, Pattern, Permission
from kraftline.metadata.image.acls import Acl

_ALL: Final = (1 << 16) - 1
_DESCRIBE: Final = 1 << Operation.DESCRIBE
_IMPLIED: Final = {
    **dict.fromkeys(
        (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER), _DESCRIBE
    ),
    Operation.ALTER_CONFIGS: 1 << Operation.DESCRIBE_CONFIGS,
}


class Bits(msgspec.Struct, frozen=True, gc=False):
    allowed: int = 0
    denied: int = 0


class PatternRules:
    """The ACLs of one pattern."""

    __slots__ = ("_entries", "bits")

    def __init__(self) -> None:
        # By principal and host; how often each operation and permission is there.
        self._entries: dict[tuple[str, str], Counter[tuple[int, int]]] = {}
        self.bits: dict[tuple[str, str], Bits] = {}

    def change(self, acl: Acl, by: int) -> None:
        who = (acl.principal, acl.host)
        entries = self._entries.setdefault(who, Counter())
        what = (acl.operation, acl.permission_type)
        entries[what] += by
        if entries[what] <= 0:
            del entries[what]
        if entries:
            self.bits[who] = _bits_of(entries)
        else:
            del self._entries[who]
            self.bits.pop(who, None)

    def says(self, principal: str, host: str, operation: int, permission: int) -> bool:
        """Is there an ACL of just this operation, or of all?"""
        for who in (principal, EVERYBODY):
            for where in (host, WILDCARD):
                entries = self._entries.get((who, where))
                if entries is not None and (
                    (operation, permission) in entries or (Operation.ALL, permission) in entries
                ):
                    return True
        return False


def _bits_of(entries: Counter[tuple[int, int]]) -> Bits:
    allowed = denied = 0
    for operation, permission in entries:
        if permission == Permission.ALLOW:
            allowed |= (
                _ALL
                if operation == Operation.ALL
                else 1 << operation | _IMPLIED.get(Operation(operation), 0)
            )
        else:
            denied |= _ALL if operation == Operation.ALL else 1 << operation
    return Bits(allowed, denied)


class ResourceRules:
    """The ACLs of one type of resources."""

    def __init__(self) -> None:
        self.literal: dict[str, PatternRules] = {}
        self.prefixed: dict[str, PatternRules] = {}
        self._counts: Counter[int] = Counter()  # of prefixes, by their length
        self._lengths: tuple[int, ...] = ()  # that there are, the shortest first

    def change(self, acl: Acl, by: int) -> None:
        kind = self.prefixed if acl.pattern_type == Pattern.PREFIXED else self.literal
        name = acl.resource_name
        rules = kind.get(name)
        if rules is None:
            rules = kind[name] = PatternRules()
            self._count(kind, name, 1)
        rules.change(acl, by)
        if not rules.bits:
            del kind[name]
            self._count(kind, name, -1)

    def _count(self, kind: dict[str, PatternRules], name: str, by: int) -> None:
        if kind is not self.prefixed:
            return
        known = self._counts[len(name)]
        self._counts[len(name)] += by
        if known == 0 or known + by == 0:
            self._lengths = tuple(sorted(length for length, n in self._counts.items() if n))

    def asked(self, name: str, principal: str, host: str) -> tuple[bool, int, int]:
        """Of a resource and who wants something of it: whether any ACL is about the resource, and
        what is allowed and denied."""
        whos = (
            (principal, host),
            (principal, WILDCARD),
            (EVERYBODY, host),
            (EVERYBODY, WILDCARD),
        )
        is_known = False
        allowed = denied = 0
        for rules in self._matching(name):
            is_known = True
            find = rules.bits.get
            for who in whos:
                found = find(who)
                if found is not None:
                    allowed |= found.allowed
                    denied |= found.denied
        return is_known, allowed, denied

    def _matching(self, name: str) -> list[PatternRules]:
        """Of all patterns that a name matches. As in Kafka, `*` is not for names that begin so."""
        found = []
        exact = self.literal.get(name)
        if exact is not None:
            found.append(exact)
        if not name.startswith(WILDCARD) and (every := self.literal.get(WILDCARD)) is not None:
            found.append(every)
        prefixed, most = self.prefixed, len(name)
        for length in self._lengths:
            if length > most:
                break
            beginning = name[:length]
            if beginning in prefixed:
                found.append(prefixed[beginning])
        return found
