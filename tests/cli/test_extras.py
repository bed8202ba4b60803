"""What is installed only when asked for: who needs it says so in one line, others do without."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.fixture_files import FIXTURES

NODE = str(FIXTURES / "topics_4_3/data/node-1")
EXTRAS = ("pyarrow", "deltalake", "pandas", "numpy", "pyspark", "fsspec", "jinja2", "plotly")


def without(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    hidden = f"import sys; sys.modules.update(dict.fromkeys({EXTRAS!r}))\n"
    command = [sys.executable, "-c", hidden + code, *arguments]
    return subprocess.run(command, capture_output=True, text=True)


MAIN = "from kraftline.cli.main import main; main()"


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (("history", "build", "--from", NODE, "--to", "lake"), "spark"),
        (("history", "as-of", "lake"), "lake"),
        (("history", "diff", "lake", "1", "2"), "lake"),
        (("history", "changes", "lake"), "lake"),
        (("history", "health", "lake"), "lake"),
        (("report", "lake"), "report"),
        (("topic-data", NODE, "--to", "out"), "spark"),
    ],
)
def test_a_verb_that_needs_an_extra_names_it(arguments: tuple[str, ...], extra: str) -> None:
    done = without(MAIN, *arguments)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("kraftline: ")
    assert line.endswith(f": pip install 'kraftline[{extra}]'")


@pytest.mark.parametrize(
    "arguments",
    [
        ("dump", NODE, "--limit", "1"),
        ("info", NODE),
        ("verify", NODE + "/mixed-0"),
        ("image", NODE),
        ("diff", NODE, "60", "120"),
        ("changes", NODE),
        ("why", "mixed-0", "--in", NODE),
        ("start", "--explain"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_tools_for_files_and_the_node_need_no_extra(arguments: tuple[str, ...]) -> None:
    done = without(MAIN, *arguments)
    assert (done.returncode, done.stderr) == (0, "")


def test_columns_name_their_extra() -> None:
    done = without("import kraftline.records.column_reader")
    assert done.stderr.endswith("columns need pyarrow: pip install 'kraftline[arrow]'\n")
