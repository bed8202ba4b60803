"""A build shows all at once or not at all, whatever happens to the run that makes it."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kraftline.errors import KraftlineError
from kraftline.lake import builds, commit
from kraftline.lake.builds import Build
from kraftline.lake.commit import Writing, writing_to
from kraftline.lake.lake import Lake
from kraftline.lake.tables import LAYOUT, TABLES, TOPICS
from tests.another_user import another_user, open_directory
from tests.lake.lakes import add_files, commit_rows, covered, span, write_lake


def topic(name: str, cluster: str = "A", **more: Any) -> dict[str, Any]:
    return {"cluster_id": cluster, "topic": name, "topic_id": f"id-{name}", **span(0), **more}


def topics(root: Path) -> list[str]:
    return sorted(Lake.at(str(root)).dataset("topics")["topic"].to_pylist())


def finish(writing: Writing) -> Build:
    return writing.finish(clusters={"A": b"{}"}, inputs=["here"])


def data_files(root: Path, table: str = "topics") -> list[Path]:
    return [path for path in (root / table).rglob("*.parquet") if "_delta_log" not in path.parts]


def test_a_build_pins_every_table(tmp_path: Path) -> None:
    write_lake(tmp_path, {"topics": [topic("a")]})
    build = Lake.at(str(tmp_path)).build
    assert (build.build, build.layout, build.inputs) == (1, LAYOUT, ["a test"])
    assert set(build.versions) == set(TABLES)
    assert build.clusters == {"A": "{}"}
    assert topics(tmp_path) == ["a"]
    assert Lake.at(str(tmp_path)).dataset("acls").num_rows == 0


def test_nothing_shows_before_the_build_is_finished(tmp_path: Path) -> None:
    write_lake(tmp_path, {"topics": [topic("a")]})
    with writing_to(str(tmp_path)) as writing:
        commit_rows(writing, "topics", [topic("b")])
        assert topics(tmp_path) == ["a"]
        finish(writing)
    assert topics(tmp_path) == ["b"]


def test_a_reader_keeps_its_build(tmp_path: Path) -> None:
    write_lake(tmp_path, {"topics": [topic("a")]})
    lake = Lake.at(str(tmp_path))
    write_lake(tmp_path, {"topics": [topic("b")]})
    assert lake.dataset("topics")["topic"].to_pylist() == ["a"]


def test_open_rows_are_replaced_and_closed_ones_added(tmp_path: Path) -> None:
    write_lake(tmp_path, {"topics": [topic("a"), topic("other", "B")]})
    with writing_to(str(tmp_path)) as writing:
        added = add_files(writing, "topics", [topic("a", **span(0, 9)), topic("b")])
        writing.commit(
            "topics",
            TOPICS.columns,
            TOPICS.partition_by,
            added,
            replace=[{"cluster_id": ["A"], "state": ["open"]}],
        )
        finish(writing)
    rows = Lake.at(str(tmp_path)).dataset("topics").to_pylist()
    found = sorted((row["cluster_id"], row["topic"], row["state"]) for row in rows)
    assert found == [("A", "a", "closed"), ("A", "b", "open"), ("B", "other", "open")]


def test_tables_that_a_run_leaves_alone_stay(tmp_path: Path) -> None:
    write_lake(tmp_path, {"topics": [topic("a")], "coverage": [covered("A", 0, 9)]})
    before = Lake.at(str(tmp_path)).build.versions
    write_lake(tmp_path, {"topics": [topic("b")]})
    after = Lake.at(str(tmp_path)).build.versions
    assert {name for name in before if before[name] != after[name]} == {"topics"}


def test_the_runner_finds_its_progress_again(tmp_path: Path) -> None:
    with writing_to(str(tmp_path)) as writing:
        writing.finish(clusters={"A": b'{"offset": 9}', "B": "x"}, inputs=[])
    with writing_to(str(tmp_path)) as writing:
        assert writing.build is not None
        assert writing.build.clusters == {"A": '{"offset": 9}', "B": "x"}


def test_a_run_that_fails_leaves_the_lake_as_it_was(tmp_path: Path) -> None:
    write_lake(tmp_path, {"topics": [topic("a")]})
    files = data_files(tmp_path)

    def interrupted() -> None:
        with writing_to(str(tmp_path)) as writing:
            commit_rows(writing, "topics", [topic("b")])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert topics(tmp_path) == ["a"]
    assert data_files(tmp_path) == files
    write_lake(tmp_path, {"topics": [topic("c")]})
    assert topics(tmp_path) == ["c"]


KILLED = """
import os, signal, sys
from pathlib import Path
from kraftline.lake.commit import writing_to
from tests.lake.lakes import add_files, commit_rows, covered
from tests.lake.test_builds import topic
root, moment = sys.argv[1:]
with writing_to(root) as writing:
    add_files(writing, "topics", [topic("never committed")])
    if moment == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    commit_rows(writing, "topics", [topic("killed"), topic("killed-too", "B")])
    if moment == "between":
        os.kill(os.getpid(), signal.SIGKILL)
    commit_rows(writing, "coverage", [covered("A", 0, 99)])
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("moment", ["before", "between", "after"])
@pytest.mark.parametrize("first", [True, False], ids=["first build", "later build"])
def test_kill_9_between_commits(tmp_path: Path, moment: str, first: bool) -> None:
    if not first:
        write_lake(tmp_path, {"topics": [topic("a")]})
    for _ in range(2):
        command = [sys.executable, "-c", KILLED, str(tmp_path), moment]
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    if first:
        with pytest.raises(KraftlineError, match="nothing has been built yet"):
            Lake.at(str(tmp_path))
    else:
        assert topics(tmp_path) == ["a"]
    with writing_to(str(tmp_path)) as writing:
        commit_rows(writing, "topics", [topic("next", "C")])
        finish(writing)
        writing.sweep()
    assert topics(tmp_path) == (["next"] if first else ["a", "next"])
    assert Lake.at(str(tmp_path)).dataset("coverage").num_rows == 0
    assert len(data_files(tmp_path)) == (1 if first else 2)


def test_one_run_at_a_time(tmp_path: Path) -> None:
    with writing_to(str(tmp_path)):
        said = rf"another run is writing to this lake \(process {os.getpid()} on .+, since 20"
        with pytest.raises(KraftlineError, match=said), writing_to(str(tmp_path)):
            pass
    with writing_to(str(tmp_path)):
        pass


def test_a_build_that_another_run_overtook_does_not_show(tmp_path: Path) -> None:
    """As on an object store, where there is no lock."""
    write_lake(tmp_path, {"topics": [topic("a")]})
    with writing_to(str(tmp_path)) as writing:
        commit_rows(writing, "topics", [topic("b")])
        other = Writing(str(tmp_path), [writing.build] if writing.build else [])
        other.finish(clusters={}, inputs=[])
        with pytest.raises(KraftlineError, match="another run has finished a build meanwhile"):
            finish(writing)
    assert topics(tmp_path) == ["a"]


def test_old_builds_are_swept(tmp_path: Path) -> None:
    for number in range(8):
        with writing_to(str(tmp_path)) as writing:
            commit_rows(writing, "topics", [topic(f"t{number}")])
            finish(writing)
            writing.sweep()
    assert len(data_files(tmp_path)) == commit.KEPT
    assert len(data_files(tmp_path, builds.NAME)) == 1
    assert topics(tmp_path) == ["t7"]


def test_logs_of_tables_stay_short(tmp_path: Path) -> None:
    for number in range(50):
        with writing_to(str(tmp_path)) as writing:
            commit_rows(writing, "topics", [topic(f"t{number}")])
            finish(writing)
            writing.sweep()
    for table in ("topics", builds.NAME):
        assert len(list((tmp_path / table / "_delta_log").iterdir())) < 30
    listed = builds.open_builds(str(tmp_path))
    assert listed is not None
    kept = [Lake(str(tmp_path), build) for build in builds.read_builds(listed)]
    names = [lake.dataset("topics")["topic"].to_pylist() for lake in kept]
    assert names == [["t45"], ["t46"], ["t47"], ["t48"], ["t49"]]


def test_sweeping_before_the_end_spares_what_the_run_wrote(tmp_path: Path) -> None:
    write_lake(tmp_path, {"topics": [topic("a")]})
    with writing_to(str(tmp_path)) as writing:
        commit_rows(writing, "topics", [topic("b")])
        writing.sweep()
        finish(writing)
    assert topics(tmp_path) == ["b"]


def test_small_files_become_one(tmp_path: Path) -> None:
    for number in range(20):
        with writing_to(str(tmp_path)) as writing:
            rows = [topic(f"t{number:02d}", **span(number, number + 1))]
            commit_rows(writing, "topics", rows, replace=False)
            writing.compact("topics", max_small=8)
            finish(writing)
    lake = Lake.at(str(tmp_path))
    assert len(lake.table("topics").file_uris()) <= 9
    names = lake.dataset("topics")["topic"].to_pylist()
    assert sorted(names) == [f"t{number:02d}" for number in range(20)]


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    with pytest.raises(KraftlineError, match="holds other things"), writing_to(str(tmp_path)):
        pass
    with pytest.raises(KraftlineError, match="not a lake"):
        Lake.at(str(tmp_path))


def test_what_is_no_lake_is_said(tmp_path: Path) -> None:
    with pytest.raises(KraftlineError, match="no such folder"):
        Lake.at(str(tmp_path / "nowhere"))
    with pytest.raises(KraftlineError, match="not a lake"):
        Lake.at(str(tmp_path))
    with writing_to(str(tmp_path)):
        pass
    with pytest.raises(KraftlineError, match="nothing has been built yet"):
        Lake.at(str(tmp_path))


def test_a_lake_of_another_layout_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builds, "LAYOUT", LAYOUT + 1)
    write_lake(tmp_path, {"topics": [topic("a")]})
    monkeypatch.undo()
    with pytest.raises(KraftlineError, match=f"layout {LAYOUT + 1}; this release reads"):
        Lake.at(str(tmp_path))
    with pytest.raises(KraftlineError, match="layout"), writing_to(str(tmp_path)):
        pass


def test_a_full_disk_leaves_the_lake_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lake(tmp_path, {"topics": [topic("a")]})

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(commit, "write_file", full)
    said = "cannot be written: No space left on device. The lake is as it was"
    with writing_to(str(tmp_path)) as writing:
        commit_rows(writing, "topics", [topic("b")])
        with pytest.raises(KraftlineError, match=said):
            finish(writing)
    monkeypatch.undo()
    assert topics(tmp_path) == ["a"]


def test_a_folder_without_permission() -> None:
    with open_directory() as folder:
        write_lake(folder / "lake", {"topics": [topic("a")]})
        with (
            another_user(),
            pytest.raises(KraftlineError, match="Permission denied"),
            writing_to(str(folder / "lake")),
        ):
            pass
        assert topics(folder / "lake") == ["a"]
