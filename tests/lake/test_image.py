"""The image out of a lake's rows is the image out of the log."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftline.inspect.cluster.snapshot import snapshot_lines
from kraftline.inspect.history import open_history
from kraftline.inspect.moments import AtOffset
from kraftline.lake.coverage import stand
from kraftline.lake.image import image_at, left_out
from kraftline.lake.lake import Lake
from kraftline.metadata.image import MetadataImage
from tests.fixture_files import FIXTURES
from tests.lake.lakes import lake_of

SOURCES = {
    "4.3": FIXTURES / "metadata_4_3" / "data" / "node-1",
    "3.9": FIXTURES / "metadata_3_9" / "data" / "node-1",
}


def lines(image: MetadataImage) -> list[bytes]:
    return list(snapshot_lines(image, False, lambda lost: None))


@pytest.mark.parametrize("version", SOURCES)
def test_the_image_is_that_of_the_log(tmp_path: Path, version: str) -> None:
    source = SOURCES[version]
    lake_of(tmp_path, source, "A")
    lake = Lake.at(str(tmp_path))
    history = open_history([str(source)])
    last = history.legs[0].last_offset
    compared = 0
    for offset in [*range(20, last, 23), last]:
        expected = history.image(AtOffset(offset))
        (place,) = stand(lake, AtOffset(offset)).places
        image = image_at(lake, place)
        assert lines(image) == lines(expected)
        assert image.offset == offset
        for part in ("cluster", "topics", "acls", "client_quotas", "features", "producer_ids"):
            assert getattr(image, part) == getattr(expected, part), (offset, part)
        compared += len(lines(image))
    assert compared > 300


def test_secrets_are_said_to_be_missing(tmp_path: Path) -> None:
    lake_of(tmp_path, SOURCES["4.3"], "A")
    lake = Lake.at(str(tmp_path))
    (place,) = stand(lake, None).places
    assert list(left_out(image_at(lake, place))) == ["salts and keys of SCRAM users"]
