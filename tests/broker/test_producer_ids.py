"""Producer ids: who gets which, from ours and from a real node."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from kraftline.broker.producer_ids import NoProducerIds, ProducerIds
from kraftline.schema.api.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tests.broker.running import running
from tests.broker.talking import Talk
from tests.oracle.kafka import HOST, KraftCluster


class Blocks:
    """A controller that gives out blocks of ten, slowly."""

    def __init__(self, error: ErrorCode = ErrorCode.NONE) -> None:
        self.given = 0
        self.error = error

    async def allocate_producer_ids(
        self, request: AllocateProducerIdsRequest
    ) -> AllocateProducerIdsResponse:
        assert (request.broker_id, request.broker_epoch) == (3, 17)
        await asyncio.sleep(0.001)
        if self.error:
            return AllocateProducerIdsResponse(error_code=self.error)
        self.given += 1
        return AllocateProducerIdsResponse(
            producer_id_start=10 * (self.given - 1), producer_id_len=10
        )


def _ids(blocks: Blocks) -> ProducerIds:
    return ProducerIds(blocks, 3, lambda: 17)  # type: ignore[arg-type]  # all that is asked of it


def test_everyone_gets_another_id_whatever_comes_at_once() -> None:
    async def main() -> list[int]:
        ids = _ids(Blocks())
        return list(await asyncio.gather(*(ids.take() for _ in range(137))))

    assert sorted(asyncio.run(main())) == list(range(137))


def test_the_next_block_is_there_before_the_last_one_ends() -> None:
    async def main() -> tuple[int, int]:
        blocks = Blocks()
        ids = _ids(blocks)
        for _ in range(8):
            await ids.take()
        before = blocks.given
        await ids.take()
        await asyncio.sleep(0.01)
        return before, blocks.given

    assert asyncio.run(main()) == (1, 2)


def test_no_id_where_the_controller_gives_none_and_one_when_it_does_again() -> None:
    async def main() -> int:
        blocks = Blocks(ErrorCode.STALE_BROKER_EPOCH)
        ids = _ids(blocks)
        with pytest.raises(NoProducerIds, match="STALE_BROKER_EPOCH"):
            await ids.take()
        blocks.error = ErrorCode.NONE
        return await ids.take()

    assert asyncio.run(main()) == 0


def _requests() -> Iterator[tuple[InitProducerIdRequest, int]]:
    for version in range(6):
        yield InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=5), version
    yield InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=-7), 5
    for version in (3, 4, 5):
        for producer_id, epoch in ((-1, 5), (5, -1), (5, 0), (2**40, 32767)):
            request = InitProducerIdRequest(
                transactional_id=None, producer_id=producer_id, producer_epoch=epoch
            )
            yield request, version
            yield msgspec.structs.replace(request, transactional_id=""), version
    for version in range(6):
        yield InitProducerIdRequest(transactional_id="", transaction_timeout_ms=5), version
        for timeout in (0, -1, 900_001, 2**31 - 1):
            yield (
                InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=timeout),
                version,
            )


@pytest.mark.oracle
def test_answers_are_kafkas(tmp_path: Path) -> None:
    with KraftCluster(tmp_path / "kafka", dynamic=True) as kafka:
        kafka.start()
        theirs = _tell((HOST, kafka.port(1)))
    with running(tmp_path / "ours") as node:
        ours = _tell(node.address)
    for (request, _), expected, answer in zip(_requests(), theirs, ours, strict=True):
        assert answer == expected, request


def _tell(address: tuple[str, int]) -> list[InitProducerIdResponse]:
    answers = []
    with Talk(address) as talk:
        for request, version in _requests():
            answer = talk.ask_for(InitProducerIdResponse, request, version)
            # Kafka's broker has no block at first, and tells clients to ask again.
            while answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                time.sleep(0.05)
                answer = talk.ask_for(InitProducerIdResponse, request, version)
            answers.append(answer)
    return answers
