"""`kraftline report` on lakes: one cluster, many, none; times asked for; what cannot be told."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kraftline.cli.main import verbs
from kraftline.report.tables import Tables
from tests.fixture_files import FIXTURES
from tests.lake.lakes import lake_of, write_lake
from tests.report.nights import CLUSTER, bad, quiet

DAY = FIXTURES / "eventful_day/data/node-1/__cluster_metadata-0"


def rows_of(night: Tables, cluster: str = CLUSTER) -> dict[str, list[dict[str, Any]]]:
    rows = {name: table.to_pylist() for name, table in night.items()}
    return {name: [{**row, "cluster_id": cluster} for row in rows[name]] for name in rows}


def run(lake: Path, *args: str) -> Result:
    return CliRunner().invoke(verbs, ["report", str(lake), *args])


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that should not be written is not written here."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    root = tmp_path / "lake"
    write_lake(root, rows_of(bad()))
    return root


def test_it_writes_a_page_and_says_the_gist(lake: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    result = run(lake, "--out", str(out))
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[0].startswith("audit-0 had no leader for 10 min")
    assert re.search(rf"{out}: [12]\.\d\d MB", result.output)
    assert out.read_text().startswith("<!doctype html>")
    assert list(tmp_path.glob(".*")) == []


def test_a_window_narrows_it(lake: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    asked = ("--since", "2026-03-01T03:35Z", "--until", "2026-03-01T03:45Z")
    result = run(lake, *asked, "--out", str(out))
    assert result.exit_code == 0, result.output
    assert "3 partitions lacked replicas for 1 min 20 s" in result.output
    assert "2026-03-01 03:35:00 to 2026-03-01 03:45:00 UTC" in out.read_text()


@pytest.mark.parametrize("window", [("--since", "2027-01-01"), ("--to", "2025-01-01")])
def test_a_time_without_data_is_said_with_what_there_is(
    lake: Path, window: tuple[str, str]
) -> None:
    result = run(lake, *window)
    assert result.exit_code == 2
    assert "there is data from 2026-03-01 03:00:00 to 2026-03-01 04:00:00 UTC" in result.output


def test_times_the_wrong_way_round_are_wrong_use(lake: Path) -> None:
    result = run(lake, "--from", "2026-03-01T04:00Z", "--to", "2026-03-01T03:00Z")
    assert result.exit_code == 2
    assert "--since is after --until" in result.output


def test_of_many_clusters_the_worst_is_told_and_all_are_listed(tmp_path: Path) -> None:
    rows, out = rows_of(quiet(), "quiet-one"), tmp_path / "page.html"
    for name, more in rows_of(bad(), "worst-one").items():
        rows[name] += more
    root = tmp_path / "lake"
    write_lake(root, rows)
    first, second, *_ = run(root, "--out", str(out)).output.splitlines()
    assert first == "Of 2 clusters worst-one was worst off:"
    assert second.startswith("audit-0 had no leader")
    html = out.read_text()
    assert "2 clusters, the worst first" in html
    assert html.index("<code>worst-one</code>") < html.index("<code>quiet-one</code>")
    folded = html[html.index("1 cluster where nothing was wrong") :]
    assert "<code>quiet-one</code>" in folded[: folded.index("</details>")]
    assert "Nothing was wrong" in run(root, "--out", str(out), "--cluster", "quiet-one").output
    assert "worst-one" not in out.read_text()


def test_an_unknown_cluster_is_said_with_those_there_are(lake: Path) -> None:
    result = run(lake, "--cluster", "other")
    assert result.exit_code == 2
    assert f"has no cluster other; there are: {CLUSTER}" in result.output


def test_a_lake_that_tells_of_nothing_has_a_page_that_says_so(tmp_path: Path) -> None:
    root, out = tmp_path / "lake", tmp_path / "page.html"
    write_lake(root, {"coverage": []})
    result = run(root, "--out", str(out))
    assert result.exit_code == 0, result.output
    assert "There is nothing to report" in out.read_text()


def unreadable(cluster: str) -> dict[str, Any]:
    return {"cluster_id": cluster, "file": "0.log", "kind": "damage", "reason": "magic -16"}


def test_a_cluster_whose_files_could_not_be_read_is_not_left_out_in_silence(tmp_path: Path) -> None:
    root, out = tmp_path / "lake", tmp_path / "page.html"
    rows = rows_of(quiet(), "quiet-one")
    rows["quarantine"] += [unreadable("damaged-one")]
    write_lake(root, rows)
    sentence = "Nothing is known of cluster damaged-one: 1 place in its files could not be read."
    result = run(root, "--out", str(out))
    assert result.exit_code == 0, result.output
    assert sentence in result.stderr
    assert sentence in out.read_text()
    only = run(root, "--out", str(out), "--cluster", "damaged-one")
    assert "There is nothing to report" in only.output
    assert sentence in out.read_text()
    assert "<h1>Nothing could be read</h1>" in out.read_text()
    assert run(root, "--out", str(out), "--cluster", "quiet-one").stderr == ""


def test_a_page_goes_where_there_is_a_folder_for_it(lake: Path, tmp_path: Path) -> None:
    result = run(lake, "--out", str(tmp_path / "missing" / "page.html"))
    assert result.exit_code == 2
    assert f"{tmp_path / 'missing'}: there is no such folder" in result.output


def test_a_page_that_there_is_no_room_for_leaves_nothing_behind(
    lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "page.html"
    out.write_text("the page before")

    def full(page: Path, html: str, encoding: str) -> None:
        page.write_bytes(html[:10].encode())
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    result = run(lake, "--out", str(out))
    assert str(result.exception) == f"{out}: cannot be written: No space left on device"
    assert out.read_text() == "the page before"
    assert list(tmp_path.glob(".*")) == []


def test_what_is_no_lake_is_wrong_use(tmp_path: Path) -> None:
    assert run(tmp_path / "nowhere").exit_code == 2


def test_a_real_eventful_day(tmp_path: Path) -> None:
    root, out = tmp_path / "lake", tmp_path / "page.html"
    lake_of(root, DAY, "eventful-day-cluster-A")
    result = run(root, "--out", str(out))
    assert result.output.startswith(
        "Partitions were without a leader 4 times, for up to 40 s; brokers 2 and 3 were lost; "
        "records may be lost\nAt the end all is well: 3 of 3 brokers in service"
    )
    html = out.read_text()
    assert "audit-0 had no leader for 40 s (01:00:16 to 01:00:57)" in html
    assert "Broker 2 was shut down cleanly and was back after 15 s (01:01:12 to 01:01:28)" in html
    assert "sessions-0 was being moved to other brokers for 31 s" in html
    assert "retention.ms of topic orders: 7d -&gt; 1d" in html
