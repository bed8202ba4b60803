"""History tables as of an offset are the image at that offset."""

from __future__ import annotations

from tests.spark.history.images import check_rows, compare
from tests.spark.history.staging import Part, Tables


def test_fixtures_are_the_image_after_every_batch(
    fixtures: list[Part], built: dict[str, Tables]
) -> None:
    """Images after every batch are held against real Kafka's in the tests of images."""
    compared = 0
    for part in fixtures:
        check_rows(built[part.cluster_id])
        ends = [batch.last_offset for leg in part.history.legs for batch in leg.batches]
        compare(part, built[part.cluster_id], ends)
        compared += len(ends)
    assert compared >= 200
    assert {"metadata_3_3", "metadata_3_9", "metadata_4_3"} <= {
        part.cluster_id.partition("/")[0] for part in fixtures
    }


def test_generated_logs_are_the_image_at_every_offset(
    generated: list[Part], built: dict[str, Tables]
) -> None:
    for part in generated:
        check_rows(built[part.cluster_id])
        compare(part, built[part.cluster_id], range(part.history.legs[-1].last_offset + 1))
