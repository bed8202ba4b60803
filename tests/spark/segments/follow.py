"""A streaming query to be killed: `python -m tests.spark.segments.follow SOURCE ROOT`."""

from __future__ import annotations

import sys
from pathlib import Path

from kraftline.spark.session import local_session
from tests.spark.segments.test_stream import stream


def main() -> None:
    source, root = map(Path, sys.argv[1:])
    query = (
        stream(local_session("follow", memory="512m"), source, maxRecordsPerTrigger=100)
        .writeStream.format("parquet")
        .option("checkpointLocation", str(root / "checkpoint"))
        .trigger(processingTime="100 milliseconds")
        .start(str(root / "out"))
    )
    query.awaitTermination()


if __name__ == "__main__":
    main()
