"""Many partitions at once: their logs are made aside, and are the same as those of few."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import kraftline


async def usable(node: kraftline.Node, count: int) -> None:
    end = time.monotonic() + 60
    while node.partitions != count:
        assert time.monotonic() < end, f"{node.partitions} of {count} partitions"
        await asyncio.sleep(0.01)


def files(root: Path, topic: str) -> dict[str, list[str]]:
    """What is in each partition's directory of a topic, by the partition's number."""
    return {
        path.name.removeprefix(f"{topic}-"): sorted(each.name for each in path.iterdir())
        for path in root.glob(f"{topic}-*")
        if not path.name.endswith("-delete")
    }


def test_logs_of_many_new_partitions_have_the_same_files_as_one(tmp_path: Path) -> None:
    async def main() -> None:
        async with kraftline.Node({"log.dirs": str(tmp_path)}) as node:
            await node.create_topic("one", 1)
            await node.create_topic("many", 50, {"segment.bytes": 2_000_000})
            await usable(node, 51)
            [expected] = files(tmp_path, "one").values()
            assert files(tmp_path, "many") == {str(each): expected for each in range(50)}
            for number in range(50):
                partition = node.broker.partitions.get("many", number)
                assert partition is not None
                assert partition.log.config.segment_bytes == 2_000_000
                assert partition.log.topic_id == partition.topic_id

    asyncio.run(main())


def test_the_event_loop_goes_on_while_logs_are_made(tmp_path: Path) -> None:
    async def main() -> None:
        async with kraftline.Node({"log.dirs": str(tmp_path)}) as node:
            [logs] = node.broker.partitions.logs.values()
            seen = set()
            creating = asyncio.ensure_future(node.create_topic("many", 500))
            while not creating.done():
                seen.add(len(logs))
                await asyncio.sleep(0)
            await creating
            await usable(node, 500)
            # Had the loop waited, it would have seen none or all of them.
            assert len(seen) > 2

    asyncio.run(main())
