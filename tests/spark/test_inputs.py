"""From paths to Kafka's files: what is wrong with a path or a URL is said in words."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from kraftline.errors import NotKafka
from kraftline.spark.inputs import find_inputs
from tests.fixture_files import FIXTURES

NODE = FIXTURES / "metadata_4_3" / "data" / "node-1"


def test_an_empty_path_is_not_the_directory_one_stands_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """`--from "$DIR"`, where nobody has set DIR."""
    monkeypatch.chdir(NODE)
    assert find_inputs(["."])
    with pytest.raises(NotKafka, match="a path is empty"):
        find_inputs([""])


def test_a_url_of_this_machine_is_a_path() -> None:
    assert find_inputs([NODE.as_uri()]) == find_inputs([str(NODE)])


@pytest.mark.parametrize("url", ["zip://{}", "zip://*.log{}", "tar://{}"])
def test_what_is_no_archive_is_said_with_its_name(tmp_path: Path, url: str) -> None:
    file = tmp_path / "not-an-archive"
    file.write_text("neither zip nor tar")
    with pytest.raises(NotKafka, match=file.name):
        find_inputs([url.format(f"::{file.as_uri()}")])


def test_an_archive_that_is_not_there_is_said_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(NotKafka, match=r"gone\.zip: there is no such file"):
        find_inputs([f"zip://::{(tmp_path / 'gone.zip').as_uri()}"])


def test_files_in_an_archive_are_those_in_the_directory(tmp_path: Path) -> None:
    packed = tmp_path / "node.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for file in sorted(NODE.rglob("*")):
            archive.write(file, file.relative_to(NODE))
    found = find_inputs([f"zip://::{packed.as_uri()}"])
    expected = find_inputs([str(NODE)])
    assert [(each.offset, each.size, each.cluster_id, each.node) for each in found] == [
        (each.offset, each.size, each.cluster_id, each.node) for each in expected
    ]
    assert all(each.path.endswith(f"::{packed.as_uri()}") for each in found)


def test_a_storage_that_nobody_knows_is_said() -> None:
    with pytest.raises(NotKafka, match=r"^nowhere://bucket/kafka: .*nowhere"):
        find_inputs(["nowhere://bucket/kafka"])
