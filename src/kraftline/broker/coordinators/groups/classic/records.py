"""What of a classic group is in its topic, and the group that comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kraftline.broker.coordinators.groups.classic.group import ClassicGroup, Phase
from kraftline.broker.coordinators.groups.classic.member import Member
from kraftline.broker.coordinators.state import Change
from kraftline.schema.api.join_group import JoinGroupRequestProtocol
from kraftline.schema.coordinator.group.group_metadata import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)

_VERSION: Final = 3
_UNKNOWN: Final = -1


def group_record(group: ClassicGroup, assignments: Mapping[str, bytes]) -> Change:
    """The group as it is, with what each member is assigned."""
    return Change(
        GroupMetadataKey(group=group.group_id),
        GroupMetadataValue(
            protocol_type=group.type or "",
            generation=group.generation,
            protocol=group.protocol,
            leader=group.leader,
            current_state_timestamp=_UNKNOWN if group.since_ms is None else group.since_ms,
            members=tuple(
                MemberMetadata(
                    member_id=each.member_id,
                    group_instance_id=each.instance_id,
                    client_id=each.client_id,
                    client_host=each.client_host,
                    rebalance_timeout=each.rebalance_timeout_ms,
                    session_timeout=each.session_timeout_ms,
                    subscription=each.metadata(group.protocol),
                    assignment=assignments[each.member_id],
                )
                for each in group.members.values()
            ),
        ),
        _VERSION,
    )


def empty_group_record(group_id: str, now: int) -> Change:
    """A group that has just come to be."""
    return Change(
        GroupMetadataKey(group=group_id),
        GroupMetadataValue(protocol=None, leader=None, current_state_timestamp=now),
        _VERSION,
    )


def group_from(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    """The group that a record tells of: stable, or empty. Of its members' protocols only the one
    is known that was in use."""
    since = value.current_state_timestamp
    group = ClassicGroup(
        group_id,
        None if since == _UNKNOWN else since,
        Phase.STABLE if value.members else Phase.EMPTY,
        value.generation,
        value.protocol_type or None,
        value.protocol,
        value.leader,
    )
    for each in value.members:
        timeout = each.rebalance_timeout
        member = Member(
            each.member_id,
            each.group_instance_id,
            each.client_id,
            each.client_host,
            each.session_timeout if timeout == _UNKNOWN else timeout,
            each.session_timeout,
            (JoinGroupRequestProtocol(name=value.protocol or "", metadata=each.subscription),),
            each.assignment,
        )
        group.add(member, value.protocol_type)
    group.learn_topics()
    return group
