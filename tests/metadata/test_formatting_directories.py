"""Which directories a node may start with, and what it says of the others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kraftline.metadata.directories import WrongDirectory, check_directories
from tests.fixture_files import FIXTURES
from tests.fixtures.formatted.cases import CLUSTER, DIRECTORY, meta
from tests.fixtures.formatted.cases import OTHER_DIRECTORY as OTHER


def directory(root: Path, name: str, text: str | None = None) -> str:
    (root / name).mkdir()
    if text is not None:
        (root / name / "meta.properties").write_text(text)
    return str(root / name)


def test_formatted_directories_of_one_node_are_fine(tmp_path: Path) -> None:
    paths = [directory(tmp_path, "a", meta()), directory(tmp_path, "b", meta(directory=OTHER))]
    found = check_directories(paths, paths[0], node_id=1)
    assert [each.cluster_id for each in found.formatted.values()] == [CLUSTER] * 2


@pytest.mark.parametrize(
    ("node", "node_id"),
    [
        ("metadata_4_3/data/node-2", 2),
        ("topics_4_3/data/node-1", 1),
        ("metadata_3_3/data/node-1", 1),
        ("metadata_3_9/data/node-1", 1),
        ("upgraded_4_3/data/node-4", 4),
        ("killed_4_3/data/node-1", 1),
    ],
)
def test_directories_of_real_nodes_are_fine(node: str, node_id: int) -> None:
    first = FIXTURES / node
    paths = [str(path) for path in (first, first.with_name(f"{first.name}-second"))]
    there = [path for path in paths if os.path.isdir(path)]
    assert len(check_directories(there, there[0], node_id=node_id).formatted) == len(there)
    with pytest.raises(WrongDirectory):
        check_directories(there, there[0], node_id=node_id + 1)


def test_meta_properties_alone_counts_as_formatted(tmp_path: Path) -> None:
    path = directory(tmp_path, "a", meta())
    assert os.listdir(path) == ["meta.properties"]
    check_directories([path], path, node_id=1, cluster_id=CLUSTER)


def test_files_before_3_7_have_no_directory_id(tmp_path: Path) -> None:
    old = f"node.id=1\nversion=1\ncluster.id={CLUSTER}\n"
    paths = [directory(tmp_path, name, old) for name in "ab"]
    check_directories(paths, paths[0], node_id=1)


def test_unformatted_node_is_told_to_format(tmp_path: Path) -> None:
    path = directory(tmp_path, "a")
    with pytest.raises(WrongDirectory, match=r"No readable meta.properties.*/a.*kraftline format"):
        check_directories([path, f"{path}/not-there"], path, node_id=1)


@pytest.mark.parametrize(
    ("metadata", "kind"), [("a", "log directory"), ("b", "metadata log directory")]
)
def test_half_formatted_set_names_the_directory_without_a_file(
    metadata: str, kind: str, tmp_path: Path
) -> None:
    paths = [directory(tmp_path, "a", meta()), directory(tmp_path, "b")]
    with pytest.raises(WrongDirectory, match=f"No `meta.properties` found in {kind} .*/b, while"):
        check_directories(paths, str(tmp_path / metadata), node_id=1)


def test_directory_of_another_node_names_both_ids_and_the_file(tmp_path: Path) -> None:
    path = directory(tmp_path, "a", meta(node=2))
    with pytest.raises(WrongDirectory, match=r"node id 2 .* node id 1 in .*/a/meta.properties"):
        check_directories([path], path, node_id=1)


def test_directory_of_another_cluster_names_both_ids_and_both_places(tmp_path: Path) -> None:
    foreign = meta(cluster="elsewhere", directory=OTHER)
    paths = [directory(tmp_path, "a", meta()), directory(tmp_path, "b", foreign)]
    with pytest.raises(WrongDirectory) as refused:
        check_directories(paths, paths[0], node_id=1)
    assert str(refused.value) == (
        f"Invalid cluster.id in: {paths[1]}/meta.properties. Expected {CLUSTER}, but read "
        f"elsewhere ({CLUSTER} is in {paths[0]})"
    )
    with pytest.raises(WrongDirectory, match=f"Expected other, but read {CLUSTER}"):
        check_directories(paths[:1], paths[0], node_id=1, cluster_id="other")


def test_copy_of_a_directory_is_refused(tmp_path: Path) -> None:
    paths = [directory(tmp_path, name, meta()) for name in "ab"]
    with pytest.raises(WrongDirectory, match=f"Duplicate directory ID {DIRECTORY}.*/a, .*/b"):
        check_directories(paths, paths[0], node_id=1)


def test_broker_that_came_from_zookeeper_may_have_kept_version_0(tmp_path: Path) -> None:
    path = directory(tmp_path, "a", f"broker.id=1\nversion=0\ncluster.id={CLUSTER}\n")
    assert check_directories([path], path, node_id=1).formatted[path].cluster_id == CLUSTER


@pytest.mark.parametrize(
    ("text", "key"),
    [("", "broker.id"), ("broker.id=1\n", "cluster.id"), ("cluster.id=c", "broker.id")],
)
def test_file_without_its_ids_is_refused_by_the_key_that_it_lacks(
    text: str, key: str, tmp_path: Path
) -> None:
    path = directory(tmp_path, "a", text)
    with pytest.raises(WrongDirectory, match=f"there is no {key} in .*/a/meta.properties"):
        check_directories([path], path, node_id=1)


def test_metadata_log_in_another_directory_is_refused(tmp_path: Path) -> None:
    paths = [directory(tmp_path, "a", meta()), directory(tmp_path, "b", meta(directory=OTHER))]
    (tmp_path / "b" / "__cluster_metadata-0").mkdir()
    check_directories(paths, paths[1], node_id=1)
    with pytest.raises(WrongDirectory, match=r"unexpected metadata location .*/b.* is .*/a"):
        check_directories(paths, paths[0], node_id=1)


@pytest.mark.parametrize(
    "text",
    [
        "version=7\n",
        "version=1\nnode.id=1\n",
        f"version=1\ncluster.id={CLUSTER}\n",
        "version=x\n",
    ],
)
def test_broken_file_stops_the_node_only_beside_its_metadata_log(text: str, tmp_path: Path) -> None:
    paths = [directory(tmp_path, "a", meta(directory=OTHER)), directory(tmp_path, "b", text)]
    assert list(check_directories(paths, paths[0], node_id=1).broken) == paths[1:]
    with pytest.raises(WrongDirectory, match=r"metadata log directory .*/b\. .* .*/b/meta.prop"):
        check_directories(paths, paths[1], node_id=1)
    with pytest.raises(WrongDirectory, match=r"No readable meta.properties .*/b: .*/b/meta.prop"):
        check_directories(paths[1:], paths[1], node_id=1)


def test_reserved_directory_id_is_named_with_what_to_do(tmp_path: Path) -> None:
    path = directory(tmp_path, "a", meta(directory="AAAAAAAAAAAAAAAAAAAAAQ"))
    words = (
        "Invalid reserved directory ID AAAAAAAAAAAAAAAAAAAAAQ found in .*/a: .* out of .*/a/meta"
    )
    with pytest.raises(WrongDirectory, match=words):
        check_directories([path], path, node_id=1)


def test_dead_disk_stops_the_node_only_under_its_metadata_log(tmp_path: Path) -> None:
    paths = [directory(tmp_path, "a", meta()), str(tmp_path / "b")]
    (tmp_path / "b").write_text("a file, so that nothing can be read below it")
    assert list(check_directories(paths, paths[0], node_id=1).unreadable) == paths[1:]
    with pytest.raises(WrongDirectory, match=r"I/O error in metadata log directory .*/b"):
        check_directories(paths, paths[1], node_id=1)
