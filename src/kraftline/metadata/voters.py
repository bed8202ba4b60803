"""The voters that a dynamic quorum starts with, as `--initial-controllers` writes them:
`id@host:port:directory`, separated by commas; an IPv6 host stands in brackets."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from kraftline.config.java_numbers import java_integer
from kraftline.errors import KraftlineError
from kraftline.schema.control.voters_record import (
    Endpoint,
    KRaftVersionFeature,
    Voter,
    VotersRecord,
)
from kraftline.schema.uuids import Uuid
from kraftline.storage.meta_properties import is_reserved

# What every voter of a quorum that can change must support.
_KRAFT_VERSIONS = KRaftVersionFeature(min_supported_version=0, max_supported_version=1)
_NUMERIC = re.compile(r"(?=.{1,15}$)[0-9]+(\.[0-9]+){0,3}")


class BadVoter(KraftlineError):
    """Text that does not name a voter."""


class InitialVoter(msgspec.Struct, frozen=True):
    node_id: int
    host: str
    port: int
    directory_id: Uuid

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.node_id}@{host}:{self.port}:{self.directory_id}"


def parse_voters(text: str) -> tuple[InitialVoter, ...]:
    """Voters by their id; BadVoter with Kafka's words where the text is not right."""
    voters: dict[int, InitialVoter] = {}
    for voter in [parse_voter(part) for part in text.strip().split(",") if part]:
        if voter.node_id in voters:
            raise BadVoter(f"Node id {voter.node_id} was specified more than once.")
        voters[voter.node_id] = voter
    if not voters:
        raise BadVoter("No voters given.")
    return tuple(voters[node_id] for node_id in sorted(voters))


def parse_voter(text: str) -> InitialVoter:
    number, at, rest = text.strip().partition("@")
    if not at:
        raise _bad(text, "No @ found in dynamic voter string.")
    if not number:
        raise _bad(text, "Invalid @ at beginning of dynamic voter string.")
    node_id = java_integer(number)
    if node_id is None:
        raise _bad(text, "Failed to parse node id in dynamic voter string.")
    if node_id < 0:
        raise _bad(text, f"Invalid negative node id {node_id} in dynamic voter string.")
    if not rest:
        raise _bad(text, "No hostname found after node id.")
    if rest.startswith("["):
        host, bracket, rest = rest[1:].partition("]")
        if not bracket:
            raise _bad(text, "Hostname began with left bracket, but no right bracket was found.")
    else:
        host, colon, rest = rest.partition(":")
        if not colon:
            raise _bad(text, "No colon following hostname could be found.")
        rest = colon + rest
    if not rest.startswith(":"):
        raise _bad(text, "Port section must start with a colon.")
    digits, colon, directory = rest[1:].partition(":")
    if not colon:
        raise _bad(text, "No colon following port could be found.")
    port = java_integer(digits)
    if port is None:
        raise _bad(text, "Failed to parse port in dynamic voter string.")
    if not 0 <= port <= 65535:
        raise _bad(text, f"Invalid port {port} in dynamic voter string.")
    try:
        directory_id = Uuid.parse(directory)
    except ValueError:
        raise _bad(text, "Failed to parse directory ID in dynamic voter string.") from None
    if is_reserved(directory_id):
        # Kafka formats with such an id, and then does not start.
        raise _bad(text, f"The directory ID {directory_id} is a reserved one.")
    return InitialVoter(node_id, host, port, directory_id)


def voters_record(voters: Sequence[InitialVoter], listener: str) -> VotersRecord:
    """The control record of a snapshot with these voters, reached through one listener."""
    return VotersRecord(
        voters=tuple(
            Voter(
                voter_id=voter.node_id,
                voter_directory_id=voter.directory_id,
                endpoints=(
                    Endpoint(name=listener.upper(), host=_plain(voter.host), port=voter.port),
                ),
                kraft_version_feature=_KRAFT_VERSIONS,
            )
            for voter in voters
        )
    )


def _plain(host: str) -> str:
    """As Java names it: an address with all of its groups, and no host at all is this one."""
    if ":" not in host:
        return _dotted(host) if _NUMERIC.fullmatch(host) else host or "localhost"
    import ipaddress  # only for these

    try:
        groups = ipaddress.IPv6Address(host).exploded.split(":")
    except ValueError:
        return host
    return ":".join(f"{int(group, 16):x}" for group in groups)


def _dotted(host: str) -> str:
    """1 to 4 numbers, of which the last fills what is left; what does not fit is a name."""
    *first, last = (int(part) for part in host.split("."))
    left = 4 - len(first)
    if max(first, default=0) > 255 or last >= 256**left:
        return host
    return ".".join(map(str, [*first, *last.to_bytes(left)]))


def _bad(text: str, reason: str) -> BadVoter:
    return BadVoter(f"{reason} ({text.strip()!r}; a voter is id@host:port:directory-id)")
