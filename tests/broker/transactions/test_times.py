"""What happens to transactions by itself: those that take too long, ids that nobody uses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kraftline.schema.api.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.coordinator.frame import TRANSACTIONS
from tests.broker.running import create_topic
from tests.broker.transactions.offset_stories import add_offsets
from tests.broker.transactions.telling import Teller, add, end, write
from tests.node.running import OurNode, RealKafka
from tests.oracle.driver import wait_until
from tests.oracle.kafka import HOST

_SETTINGS = {
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "100",
    "transactional.id.expiration.ms": "1500",
}


@pytest.fixture(
    scope="module",
    params=["kraftline", pytest.param("kafka", marks=[pytest.mark.oracle, pytest.mark.soak])],
)
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Teller]:
    root = tmp_path_factory.mktemp(f"times-{request.param}")
    kind = OurNode if request.param == "kraftline" else RealKafka
    with kind(root, _SETTINGS) as node:
        teller = Teller((HOST, int(node.bootstrap.rpartition(":")[2])))
        yield teller
        teller.close()


def state(broker: Teller, id: str) -> tuple[int, str]:
    asked = DescribeTransactionsRequest(transactional_ids=(id,))
    [found] = broker.ask_for(DescribeTransactionsResponse, asked, 0).transaction_states
    return found.error_code, found.transaction_state


def test_offsets_are_added_before_there_is_a_topic_for_them(broker: Teller) -> None:
    """Clients look for the group's coordinator, which makes the topic, after that."""
    id = broker.id("early")
    who = broker.begin(id)
    told = broker.ask(add_offsets(id, who, "nobody"), 3)
    assert isinstance(told, dict)
    assert told["error_code"] == ErrorCode.NONE
    assert state(broker, id) == (ErrorCode.NONE, "Ongoing")
    told, _ = broker.ended(id, who, True, 4)
    assert isinstance(told, dict)
    assert told["error_code"] == ErrorCode.NONE
    assert state(broker, id) == (ErrorCode.NONE, "CompleteCommit")


def test_what_takes_too_long_is_aborted_and_fenced(broker: Teller) -> None:
    topic = "slow", create_topic(broker.address, "slow")
    id = broker.id("slow")
    who = broker.begin(id, timeout_ms=300)
    broker.ask(write(topic, id, who), 12)
    assert state(broker, id) == (ErrorCode.NONE, "Ongoing")
    wait_until(lambda: state(broker, id)[1] == "CompleteAbort", "the timeout", pause=0.05)
    told = broker.ask(end(id, who, True), 5)
    assert isinstance(told, dict)
    assert told["error_code"] == ErrorCode.INVALID_TXN_STATE
    told = broker.ask(write(topic, id, who, 1), 12)
    assert isinstance(told, dict)
    [partition] = told["responses"][0]["partition_responses"]
    assert partition["error_code"] == ErrorCode.INVALID_PRODUCER_EPOCH


def test_ids_that_nobody_uses_are_forgotten(broker: Teller) -> None:
    topic, _ = "forgotten", create_topic(broker.address, "forgotten")
    used, unused = broker.id("used"), broker.id("unused")
    first, second = broker.begin(unused), broker.begin(used)
    broker.ask(add(used, second, (topic, 0)), 3)

    def is_gone() -> bool:
        return state(broker, unused)[0] == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND

    wait_until(is_gone, "the id to go", pause=0.05)
    # One that goes on stays; of the other there is a tombstone, and its producer is not known.
    assert state(broker, used) == (ErrorCode.NONE, "Ongoing")
    *_, last = broker.log(TRANSACTIONS, unused)
    assert isinstance(last, tuple)
    assert last[2] is None
    told = broker.ask(add(unused, first, (topic, 0)), 3)
    assert isinstance(told, dict)
    [partition] = told["results_by_topic_v3_and_below"][0]["results_by_partition"]
    assert partition["partition_error_code"] == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    again = broker.begin(unused)
    assert again[0] != first[0]
    assert again[1] == 0
