"""Arguments as Kafka's own tools read them (argparse4j), for verbs that stand in for one.

- The beginning of a long option stands for it if no other begins so; `-t=x` is `-t x`.
- A separate value does not begin with a dash, unless it is a negative number or the dash alone.
- `@file` stands for the lines of a file, each an argument.
- Of options that exclude each other the second one is wrong use, as it comes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import click

_NEGATIVE = re.compile(r"-[0-9]+")


class KafkaCommand(click.Command):
    """A verb with Kafka's options. Those in `own` are not Kafka's: nothing but their full name
    stands for them, so that what is short for Kafka's stays so."""

    def __init__(
        self,
        *args: object,
        own: Sequence[str] = (),
        exclusive: Sequence[str] = (),
        **more: object,
    ) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]  # click's own arguments
        self._own = frozenset(own)
        self._exclusive = frozenset(exclusive)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            options = [each for each in self.params if isinstance(each, click.Option)]
            args = list(_Reader(args, options, self._own, self._exclusive).spelled_out())
        return super().parse_args(ctx, args)


class _Reader:
    """Spells arguments out, so that click reads what Kafka's tools would have read."""

    def __init__(
        self,
        args: Sequence[str],
        options: Sequence[click.Option],
        own: frozenset[str],
        exclusive: frozenset[str],
    ) -> None:
        self._left = list(args)
        self._dashes_are_over = False
        self._takes_value: Mapping[str, bool] = {
            max(option.opts, key=len): not option.is_flag for option in options
        } | {"--help": False}
        self._names: Mapping[str, str] = {
            flag: max(option.opts, key=len) for option in options for flag in option.opts
        } | {"--help": "--help", "-h": "--help"}
        self._own = own
        self._exclusive = exclusive
        self._chosen: str | None = None

    def spelled_out(self) -> Iterator[str]:
        while self._left:
            if not self._at_flag():
                if self._left:
                    raise click.UsageError(f"unexpected argument: {self._left[0]!r}")
            elif self._left[0] == "--":
                self._dashes_are_over = True
                del self._left[0]
            else:
                for name, value in self._options(self._left.pop(0)):
                    if name == "--help":
                        yield name
                        return
                    self._check_exclusive(name)
                    yield name if value is None else f"{name}={value}"

    def _at_flag(self) -> bool:
        """Is an option next? What `@file` holds takes its place first."""
        while self._left and re.match(r"@+[^@]", self._left[0]):
            self._left[:1] = _lines(self._left[0].lstrip("@"))
        if not self._left or self._dashes_are_over:
            return False
        term = self._left[0]
        return term == "--" or bool(term.strip("-") and term[0] == "-" and not _number(term))

    def _options(self, term: str) -> Iterator[tuple[str, str | None]]:
        flag, equals, value = term.partition("=")
        name = self._resolved(flag)
        if name is not None:
            yield name, self._value(name, value if equals else None)
            return
        if term.startswith("--"):
            raise click.NoSuchOption(flag, possibilities=sorted(self._takes_value))
        for at, letter in enumerate(term[1:], start=1):
            name = self._names.get(f"-{letter}")
            if name is None:
                raise click.NoSuchOption(f"-{letter}")
            if self._takes_value[name]:
                yield name, self._value(name, term[at + 1 :] or None)
                return
            yield name, None

    def _resolved(self, flag: str) -> str | None:
        if flag in self._names:
            return self._names[flag]
        found = [
            name for name in self._names if name.startswith(flag) and name not in self._own
        ]  # fmt: skip
        if len(found) > 1:
            raise click.UsageError(f"{flag} could be {' or '.join(sorted(found))}")
        return self._names[found[0]] if found else None

    def _value(self, name: str, given: str | None) -> str | None:
        if not self._takes_value[name]:
            if given is not None:
                raise click.UsageError(f"{name} takes no value, but {given!r} is given")
            return None
        if given is not None:
            return given
        if self._at_flag() or not self._left:
            hint = ""
            if self._left and self._left[0] != "--":
                hint = f"; if {self._left[0]!r} is it, write {name}={self._left[0]}"
            raise click.UsageError(f"{name} needs a value{hint}")
        return self._left.pop(0)

    def _check_exclusive(self, name: str) -> None:
        if name in self._exclusive:
            if self._chosen not in (None, name):
                raise click.UsageError(f"{name}: not allowed with {self._chosen}")
            self._chosen = name


def _number(term: str) -> bool:
    return _NEGATIVE.fullmatch(term) is not None


def _lines(file: str) -> list[str]:
    try:
        with open(file, encoding="utf-8", errors="replace") as stream:
            return [line.removesuffix("\n") for line in stream]
    except OSError as problem:
        raise click.UsageError(
            f"Could not read arguments from file '{file}': {problem.strerror}"
        ) from None
