"""What happened to the voters of a quorum that keeps them in its log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kraftline.metadata.words.change import Change
from kraftline.schema.control.voters_record import Voter


def voter_endpoints(voter: Voter) -> str:
    """Where a voter is reached, as `listeners` in server.properties has it."""
    return ", ".join(
        f"{each.name}://{f'[{each.host}]' if ':' in each.host else each.host}:{each.port}"
        for each in voter.endpoints
    )


def voter_changes(before: Iterable[Voter], after: Iterable[Voter]) -> Iterator[Change]:
    """By id: who came, who went, and who has another directory or is reached elsewhere."""
    old, new = ({each.voter_id: each for each in voters} for voters in (before, after))
    for node in sorted(old.keys() | new.keys()):
        was, now = old.get(node), new.get(node)
        if was == now:
            continue
        if was is None:
            assert now is not None
            # Until the log has voters, every node's configuration has them.
            becomes = "becomes" if old else "is named in the log as"
            kind, text = "voters.added", f"node {node} {becomes} a voter: {_words(now)}"
        elif now is None:
            kind, text = (
                "voters.removed",
                f"node {node} is no longer a voter (it was {_words(was)})",
            )
        else:
            kind, text = "voters.changed", f"voter {node}: {_words(was)} -> {_words(now)}"
        yield Change(
            kind=kind,
            subject=f"voter {node}",
            text=text,
            before=None if was is None else _data(was),
            after=None if now is None else _data(now),
        )


def _words(voter: Voter) -> str:
    return f"{voter_endpoints(voter)}, directory {voter.voter_directory_id}"


def _data(voter: Voter) -> dict[str, str]:
    return {"endpoints": voter_endpoints(voter), "directory": str(voter.voter_directory_id)}
