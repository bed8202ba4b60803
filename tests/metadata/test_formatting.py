"""`format` beside Kafka's storage tool: the same files with the same records, the same refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.formatted import outcomes
from tests.fixtures.formatted.cases import Case, cases
from tests.metadata.formatted import describe, run_format

KAFKA = outcomes()
CASES = list(cases())
FORMATTED = [case for case in CASES if KAFKA[case.name].code == 0]
REFUSED = [case for case in CASES if KAFKA[case.name].code != 0]

# Refusals where other words serve better: what ours must say instead.
OWN_WORDS = {
    "cannot be made": "/proc/nope",
    "node id is no number": "Invalid value x for configuration node.id: Not a number",
    "scram SCRAM-SHA-256=[name=a,password=]": "The password of 'a' is empty",
    # Kafka's has a stray quote at the end.
    "inter-broker listener of a controller": "controller.listener.names must not contain an "
    "explicitly set inter.broker.listener.name configuration value when process.roles=controller",
    "copied directory": "Duplicate directory ID JEXY6aqzQY-32P5TStzaFg found. It was the ID of "
    "DIR/a, but also of DIR/b",
}


def of(found: list[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", found, ids=[case.name for case in found])


@of(FORMATTED)
def test_directory_is_what_kafka_makes_of_the_same_arguments(case: Case, tmp_path: Path) -> None:
    kafka, ours = tmp_path / "kafka", tmp_path / "ours"
    KAFKA[case.name].write(kafka)
    done = run_format(case.arguments(ours), ours)
    assert (done.code, done.refused) == (0, None), done
    for name in case.files:
        # Kafka's file is only there if it was written anew.
        if name not in KAFKA[case.name].files:
            (ours / name).unlink()
    random_salt = "password" in " ".join(case.args) and "salt=" not in " ".join(case.args)
    assert describe(ours, salted=not random_salt) == describe(kafka, salted=not random_salt)
    assert modes(ours) == {name: name.startswith("0000") for name in modes(ours)}


@of(FORMATTED)
def test_words_are_those_that_kafka_prints(case: Case, tmp_path: Path) -> None:
    said = run_format(case.arguments(tmp_path), tmp_path).printed.splitlines()
    expected = KAFKA[case.name].printed.splitlines()
    # The seed is told without the keys of users, and directories in the order of their names.
    assert [line for line in sorted(said) if not line.startswith("Bootstrap")] == [
        line for line in sorted(expected) if not line.startswith("Bootstrap")
    ]
    assert any(line.startswith("Bootstrap metadata: metadata.version=") for line in said) == any(
        line.startswith("Bootstrap metadata: ") for line in expected
    )


@of(REFUSED)
def test_what_kafka_refuses_is_refused_in_the_same_words(case: Case, tmp_path: Path) -> None:
    kafka = KAFKA[case.name]
    args = case.arguments(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    done = run_format(args, tmp_path)
    if kafka.kind is None:
        assert (done.code, done.refused) == (2, None)
    else:
        assert done.code == 1
        assert done.refused is not None
        words = str(kafka.refused).removeprefix("requirement failed: ")
        assert done.refused.startswith(OWN_WORDS.get(case.name, words))
    assert sorted(tmp_path.rglob("*")) == before, "nothing is written when something is wrong"


def modes(root: Path) -> dict[str, bool]:
    """Which checkpoints are read-only."""
    found = root.rglob("*.checkpoint")
    return {path.name: not path.stat().st_mode & 0o222 for path in found}
