"""What happened to ACLs, SCRAM users and delegation tokens: never a key or a salt."""

from __future__ import annotations

from datetime import UTC, datetime

from kraftline.metadata.image.acls import Acl
from kraftline.metadata.image.delegation_tokens import DelegationToken
from kraftline.metadata.image.scram import ScramCredential, ScramUser
from kraftline.metadata.words.change import Change

_RESOURCES = {
    1: "anything",
    2: "topic",
    3: "group",
    4: "the cluster",
    5: "transactional id",
    6: "delegation token",
    7: "user",
}
_OPERATIONS = {
    1: "do anything with",
    2: "do everything with",
    3: "read",
    4: "write to",
    5: "create",
    6: "delete",
    7: "alter",
    8: "describe",
    9: "act as a broker of",
    10: "describe configs of",
    11: "alter configs of",
    12: "write idempotently to",
    13: "create tokens for",
    14: "describe tokens of",
    15: "commit in two phases with",
}
_PERMISSIONS = {2: "deny", 3: "allow"}
_PREFIXED = 4
MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}


def acl_text(acl: Acl) -> str:
    """`allow User:alice to read topic orders`; hosts only where they are limited."""
    resource = _RESOURCES.get(acl.resource_type, f"resource of type {acl.resource_type}")
    if acl.resource_type not in (1, 4):
        if acl.pattern_type == _PREFIXED:
            resource = f"{resource}s that begin with {acl.resource_name}"
        elif acl.resource_name == "*":
            resource = f"any {resource}"
        else:
            resource = f"{resource} {acl.resource_name}"
    who = "everybody" if acl.principal == "User:*" else acl.principal
    permission = _PERMISSIONS.get(acl.permission_type, f"permission {acl.permission_type} for")
    what = _OPERATIONS.get(acl.operation, f"operation {acl.operation} on")
    host = "" if acl.host == "*" else f" from {acl.host}"
    return f"{permission} {who} to {what} {resource}{host}"


def acl_changes(before: Acl | None, after: Acl | None) -> list[Change]:
    """An entry never changes in place; where it did all the same, the old one went."""
    if before == after:
        return []
    return [
        Change(
            kind=kind,
            subject=f"ACL of {acl.principal}",
            text=f"ACL {verb}: {acl_text(acl)}",
            before=acl_text(acl) if kind == "acl.removed" else None,
            after=acl_text(acl) if kind == "acl.added" else None,
            topic=acl.resource_name if acl.resource_type == 2 else None,
        )
        for acl, kind, verb in ((before, "acl.removed", "removed"), (after, "acl.added", "added"))
        if acl is not None
    ]


def scram_change(
    user: ScramUser, before: ScramCredential | None, after: ScramCredential | None
) -> Change | None:
    if before == after:
        return None
    mechanism = MECHANISMS.get(user[0], f"SCRAM mechanism {user[0]}")
    if after is None:
        kind, text = "scram.removed", f"{mechanism} credentials of user {user[1]} removed"
    else:
        kind = "scram.set" if before is None else "scram.changed"
        verb = "set" if before is None else "changed"
        text = f"{mechanism} credentials of user {user[1]} {verb} ({after.iterations:,} iterations)"
    return Change(
        kind=kind,
        subject=f"user {user[1]}",
        text=text,
        before=None if before is None else {"iterations": before.iterations},
        after=None if after is None else {"iterations": after.iterations},
    )


def token_change(before: DelegationToken | None, after: DelegationToken | None) -> Change | None:
    if before == after:
        return None
    token = after or before
    assert token is not None
    whose = f"delegation token of {token.owner}"
    if after is None:
        kind, text = "token.removed", f"{whose} removed or expired"
    elif before is None:
        kind, text = "token.created", f"{whose} created, good until {_when(after)}"
    else:
        kind, text = "token.renewed", f"{whose} renewed, good until {_when(after)}"
    return Change(
        kind=kind,
        subject=whose,
        text=text,
        before=None if before is None else before.expiration_timestamp,
        after=None if after is None else after.expiration_timestamp,
    )


def _when(token: DelegationToken) -> str:
    try:
        when = datetime.fromtimestamp(token.expiration_timestamp / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{token.expiration_timestamp} ms"
    return f"{when:%Y-%m-%d %H:%M:%SZ}"
