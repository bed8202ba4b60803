"""What the documents say is so: commands run, tables are fresh, links lead somewhere."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kraftline.cli.history_build import command as build
from kraftline.cli.main import VERBS, verbs
from kraftline.cli.start import command as start
from kraftline.lake.tables import TABLES, Table
from kraftline.spark.history.troubles import BITS, BROKER_DOWN
from kraftline.spark.record_table import records_table, struct_name, struct_types
from kraftline.spark.sources import metadata_options, segment_options
from kraftline.spark.sources.metadata_rows import COLUMNS as METADATA_COLUMNS
from kraftline.spark.sources.segment_columns import RECORD
from tests.fixture_files import FIXTURES
from tests.lake.lakes import lake_of

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NODE = FIXTURES / "topics_4_3/data/node-1"
# What stands in the documents for a reader's own directory.
STAND_INS = {
    "/var/lib/kafka/orders-0": NODE / "mixed-0",
    "orders-0/": f"{NODE}/mixed-0/",
    "/var/lib/kafka": NODE,
}


A_LAKE = "/srv/lake"
BUILD = "kraftline history build "
START = "kraftline start"


def localised(text: str, lake: Path | None = None) -> str:
    for theirs, ours in STAND_INS.items():
        text = text.replace(theirs, str(ours))
    return text if lake is None else text.replace(A_LAKE, str(lake))


def blocks(language: str) -> list[tuple[Path, str]]:
    pattern = re.compile(rf"^```{language}\n(.*?)^```", re.M | re.S)
    return [(page, block) for page in PAGES for block in pattern.findall(page.read_text())]


COMMANDS = [
    line.split("#")[0].split("|")[0].strip()
    for _, block in blocks("sh")
    for line in block.splitlines()
    if line.startswith("kraftline ")
]


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("documents") / "lake"
    lake_of(root, FIXTURES / "eventful_day/data/node-1/__cluster_metadata-0", "documented")
    return root


@pytest.mark.parametrize(
    "command", [each for each in COMMANDS if BUILD not in each and START not in each]
)
def test_commands_in_the_documents_run(
    command: str, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # some write where they stand
    args = shlex.split(localised(command, lake))[1:]
    result = CliRunner().invoke(verbs, args)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("command", [each for each in COMMANDS if BUILD in each])
def test_builds_in_the_documents_are_understood(command: str) -> None:
    """Only that: they need Spark and time, and have tests of their own."""
    assert build.make_context("build", shlex.split(command)[3:]).params


@pytest.mark.parametrize("command", [each for each in COMMANDS if START in each])
def test_starts_in_the_documents_are_understood(command: str) -> None:
    """They would go on for ever; tests/node has how nodes start."""
    assert start.make_context("start", shlex.split(command)[2:]).params


PYTHON = [block for _, block in blocks("python")]


@pytest.mark.parametrize("code", [block for block in PYTHON if "spark" not in block])
def test_python_in_the_documents_runs(code: str) -> None:
    subprocess.run([sys.executable, "-c", localised(code)], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("code", [block for block in PYTHON if "spark" in block])
def test_spark_in_the_documents_runs(
    code: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark, "stop", lambda: None)  # it is the session of all tests
    exec(localised(code), {})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_are_there(page: Path) -> None:
    packages = [each.name for each in (ROOT / "src/kraftline").iterdir() if each.is_dir()]
    ours = rf"`((?:tests|tools|benchmarks|docs|{'|'.join(packages)})/[\w./-]+)`"
    for name in re.findall(ours, page.read_text()):
        assert (ROOT / name).exists() or (ROOT / "src/kraftline" / name).exists(), name


def test_the_tables_of_compatibility_are_fresh() -> None:
    done = subprocess.run([sys.executable, "tools/compatibility.py", "--check"], cwd=ROOT)
    assert done.returncode == 0, "run tools/compatibility.py"


def _columns_told(page: str) -> dict[str, set[str]]:
    """What stands in backticks in the first cells below each heading that is a table's name."""
    sections = re.split(r"^## ", page, flags=re.M)[1:]
    return {
        section.splitlines()[0].strip("`"): {
            name
            for cell in re.findall(r"^\| (`[^|]*) \|", section, re.M)
            for name in re.findall(r"`(\w+)`", cell)
        }
        for section in sections
    }


@pytest.mark.parametrize(
    ("page", "columns", "options"),
    [
        ("metadata", {field.name for field in METADATA_COLUMNS}, metadata_options.NAMES),
        ("segments", set(RECORD.names), segment_options.NAMES),
    ],
)
def test_every_column_and_option_of_a_source_is_told_of(
    page: str, columns: set[str], options: tuple[str, ...]
) -> None:
    told = _columns_told((ROOT / f"docs/{page}.md").read_text())
    assert told["Columns"] == columns
    assert told["Options"] == set(options) - {"path", "paths"}


@pytest.mark.parametrize("table", [*TABLES.values(), records_table()], ids=lambda t: str(t.name))
def test_every_column_of_a_lake_is_told_of(table: Table) -> None:
    told = _columns_told((ROOT / "docs/tables.md").read_text())
    for_all = {"cluster_id", *(told["When a row was true"] if table.is_history else ())}
    structs = {struct_name(each) for each in struct_types()} if table.name == "records" else set()
    assert for_all | told[table.name] >= set(table.columns.names) - structs
    if table.name != "health":  # which has its kinds beside its columns
        assert told[table.name] <= set(table.columns.names)


def test_every_kind_of_trouble_is_told_of() -> None:
    page = (ROOT / "docs/tables.md").read_text()
    assert set(re.findall(r"^\| `([^`]+)` \| ", page, re.M)) >= {*BITS, BROKER_DOWN}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(verb: str) -> None:
    result = CliRunner().invoke(verbs, [verb, "--help"])
    assert result.exit_code == 0
    assert "Example" in result.output
    assert f"kraftline {verb}" in result.output
