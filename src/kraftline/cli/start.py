"""`kraftline start`: run a node, broker and controller in one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kraftline.cli.options import PATH

if TYPE_CHECKING:
    from kraftline.config.effective import Config


def _address(context: click.Context, option: click.Parameter, text: str | None) -> str | None:
    if text is not None and not text.rpartition(":")[2].isdecimal():
        raise click.BadParameter(f"{text!r} is not [HOST:]PORT")
    return text


@click.command(name="start")
@click.argument("file", type=PATH, metavar="[server.properties]", required=False)
@click.option(
    "--override",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Counts more than the file; may be repeated.",
)
@click.option(
    "--explain", is_flag=True, help="Print the effective configuration, check it, and stop."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(("table", "json")),
    default="table",
    show_default=True,
    help="With --explain.",
)
@click.option(
    "--metrics",
    metavar="[HOST:]PORT",
    callback=_address,
    help="Serve /metrics, /healthz and /readyz over HTTP there; on 127.0.0.1 without a host.",
)
@click.option(
    "--log-format",
    type=click.Choice(("text", "json")),
    default="text",
    show_default=True,
    help="Lines for people, or a JSON object to a line.",
)
def command(
    file: str | None,
    overrides: tuple[str, ...],
    explain: bool,
    form: str,
    metrics: str | None,
    log_format: str,
) -> None:
    """Run a Kafka node with Kafka's own configuration file.

    Without a file it is a standalone node on 127.0.0.1:9092, with its data in ./kraftline-data,
    which is formatted when it is first used. With a file the directories must be formatted
    (`kraftline format`).

    It stops in order on SIGTERM and Ctrl-C. Exit code 0: stopped in order; 1: it could not start
    or go on; 2: wrong use.

    \b
    Examples:
      kraftline start
      kraftline start --override listeners=PLAINTEXT://127.0.0.1:19092 --override log.dirs=/tmp/k
      kraftline start server.properties --explain
      kraftline start server.properties --metrics 9404 --log-format json
    """
    from kraftline.config.effective import read_config
    from kraftline.errors import KraftlineError, NotKafka

    given = dict(map(_pair, overrides))
    if metrics is not None:
        given["kraftline.metrics.listener"] = metrics
    try:
        if file is None:
            from kraftline.node.standalone import standalone_config

            config = standalone_config(given)
        else:
            config = read_config(file, given)
        if explain:
            _explain(config, form)
            _check(config)
            return
        _run(config, is_standalone=file is None, log_format=log_format)
    except NotKafka as problem:  # a directory that is someone else's is no wrong use
        raise KraftlineError(str(problem)) from problem


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise click.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="--override")
    return key.strip(), value.strip()


def _run(config: Config, *, is_standalone: bool, log_format: str) -> None:
    import gc

    # Almost all that is made from here on stays: `run_node` lets the collector begin after that.
    gc.disable()
    from kraftline.node.process import run_node
    from kraftline.operation.log_lines import say_on_stderr

    say_on_stderr(log_format)
    _remark(config)
    if is_standalone:
        from kraftline.node.standalone import format_if_new

        for line in format_if_new(config):
            click.echo(line, err=True)
    run_node(config)


def _check(config: Config) -> None:
    """What a start would be refused for, said after everything else."""
    from kraftline.config.node_settings import check_supported, node_settings
    from kraftline.node.security import Security

    settings = node_settings(config)
    check_supported(config)
    Security(config, settings)


def _remark(config: Config) -> None:
    for remark in config.remarks():
        click.echo(f"warning: {remark}", err=True)


def _explain(config: Config, form: str) -> None:
    _remark(config)
    settings = [(each.name, each.text, each.source) for each in config.settings()]
    if form == "json":
        import msgspec

        rows = [dict(zip(("name", "value", "source"), row, strict=True)) for row in settings]
        click.echo(msgspec.json.format(msgspec.json.encode(rows)).decode())
        return
    # What was set comes first: it is what people look for.
    settings.sort(key=lambda row: row[2] == "default")
    wide = max(len(name) for name, _, _ in settings)
    for name, text, source in settings:
        click.echo(f"{name:{wide}}  {text or '-'}  ({source})")
