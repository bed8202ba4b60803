"""Groups of verbs whose files are imported when asked for, so that a small question is quick."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from typing import Any

import click


class Verbs(click.Group):
    """`said` has a line for each; a verb is the `command` of `kraftline.cli.<start><verb>`, unless
    the group has it already."""

    def __init__(self, *args: Any, said: Mapping[str, str], start: str = "", **more: Any) -> None:
        super().__init__(*args, **more)
        self._said = said
        self._start = start

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._said)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._said or cmd_name in self.commands:
            return super().get_command(ctx, cmd_name)
        module = self._start + cmd_name.replace("-", "_")
        command: click.Command = importlib.import_module(f"kraftline.cli.{module}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """click would look for what was meant among verbs that are imported, and so in vain."""
        if args[0] not in self._said and not ctx.resilient_parsing:
            from difflib import get_close_matches

            near = get_close_matches(args[0], self._said)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            ctx.fail(f"No such verb {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """click makes 1 of a closed pipe and of Ctrl-C, which here says that there are problems."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # `kraftline dump … | head`: the reader has what it wanted
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(0)
        except KeyboardInterrupt:
            ctx.exit(130)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl(list(self._said.items()))
