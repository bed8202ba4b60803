"""The verbs themselves: found, mistyped, completed by a shell, and shown by example."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from kraftline import __version__
from kraftline.cli.main import verbs


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["dmup"], "dump"),
        (["topic_data"], "topic-data"),
        (["history", "biuld"], "build"),
        (["snapshot", "eidt"], "edit"),
    ],
)
def test_a_mistyped_verb_is_answered_with_the_one_that_was_meant(
    typed: list[str], meant: str
) -> None:
    result = CliRunner().invoke(verbs, typed)
    assert result.exit_code == 2
    assert result.output.endswith(f"No such verb {typed[-1]!r}. Did you mean {meant}?\n")


def test_nothing_is_suggested_for_a_verb_like_no_other() -> None:
    result = CliRunner().invoke(verbs, ["frobnicate"])
    assert result.exit_code == 2
    assert result.output.endswith("No such verb 'frobnicate'.\n")


def leaves(group: click.Group = verbs, start: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if isinstance(found, click.Group):
            yield from leaves(found, (*start, name))
        else:
            yield *start, name


LEAVES = list(leaves())


def _leaf(names: tuple[str, ...]) -> click.Command:
    found: click.Command | None = verbs
    for name in names:
        assert isinstance(found, click.Group)
        found = found.get_command(click.Context(found), name)
    assert found is not None
    return found


def _offered(words: list[str], incomplete: str) -> list[tuple[str, str]]:
    complete = ShellComplete(verbs, {}, "kraftline", "_KRAFTLINE_COMPLETE")
    return [(each.type, each.value) for each in complete.get_completions(words, incomplete)]


def test_a_shell_is_offered_verbs_and_options() -> None:
    assert _offered([], "d") == [("plain", "dump"), ("plain", "diff")]
    assert _offered(["snapshot"], "e") == [("plain", "edit")]
    assert _offered(["dump"], "--fo") == [("plain", "--format"), ("plain", "--follow")]


@pytest.mark.parametrize("names", LEAVES, ids=" ".join)
def test_a_shell_completes_paths(names: tuple[str, ...]) -> None:
    """click offers nothing at all for plain text, so a shell would not complete a path there."""
    of_paths = {"PATH", "PATH...", "[PATH...]", "LAKE", "OUT", "FILE", "DIR", "[server.properties]"}
    for parameter in _leaf(names).params:
        if parameter.make_metavar(click.Context(verbs)) in of_paths:
            assert isinstance(parameter.type, click.Path), parameter.name


def _examples(names: tuple[str, ...]) -> list[str]:
    shown = CliRunner().invoke(verbs, [*names, "--help"]).output.replace("\\\n", " ")
    return [line.strip() for line in re.findall(r"^ +kraftline .*$", shown, re.M)]


@pytest.mark.parametrize("names", LEAVES, ids=" ".join)
def test_examples_in_help_are_understood(names: tuple[str, ...]) -> None:
    examples = _examples(names)
    assert f"kraftline {' '.join(names)}" in "".join(examples)
    for example in examples:
        plain = re.sub(r"\$\(.*?\)", "X", example)
        words = shlex.split(re.split(r" [|>] ", plain)[0])[1:]
        leaf = next(each for each in LEAVES if tuple(words[: len(each)]) == each)
        assert _leaf(leaf).make_context(leaf[-1], words[len(leaf) :])


@pytest.mark.parametrize("asked", ["", "interpreted"])
def test_the_version_comes_with_the_kernel_in_force(asked: str) -> None:
    """pip is silent about a compiler that was not there."""
    done = subprocess.run(
        [sys.executable, "-m", "kraftline", "--version"],
        env={**os.environ, "KRAFTLINE_KERNEL": asked},
        capture_output=True,
        check=True,
        text=True,
    )
    version, loops = done.stdout.splitlines()
    assert version == f"kraftline {__version__}"
    assert loops.startswith(f"hot loops: {asked}")
