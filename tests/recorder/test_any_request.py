"""Random requests of every API that we answer, in every version, to a running Kafka and to us.

Both start alike and are sent the same, so what one keeps differently comes to light later too.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

import pytest

from kraftline.broker.registry import MODULES, answered
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kraftline.schema.api.registry import request_class
from tests.effort import rounds
from tests.recorder.any_request import GROUPS, any_request
from tests.recorder.compare import FREE, NORMAL, Field, Normal, loose_differences
from tests.recorder.live import Live

pytestmark = pytest.mark.oracle

METADATA, INIT_PRODUCER_ID = 3, 22
# Metadata before version 4 makes topics, sooner or later.
_FIRST: Final = {METADATA: 4}
_FREE: Final[Mapping[Field, Normal]] = {
    **NORMAL,
    **FREE,
    "log_dir": lambda value: "somewhere",
    "total_bytes": lambda value: 0,
    "usable_bytes": lambda value: 0,
    "session_id": lambda value: value != 0,
    "InitProducerIdResponse.producer_id": lambda value: value >= 0,
    "documentation": bool,
    "ApiVersionsResponse.api_keys": lambda keys: [k for k in keys if k.api_key in MODULES],
}


@pytest.fixture(scope="module")
def both(kafka_live: Live, our_live: Live) -> tuple[Live, Live]:
    """Ours and Kafka's, once each has ids for producers, and coordinators."""
    for each in (our_live, kafka_live):
        each.wait_for_coordinators(GROUPS)
        while True:
            said = each.ask(InitProducerIdRequest(transactional_id=None), INIT_PRODUCER_ID, 4)
            assert isinstance(said, InitProducerIdResponse)
            if said.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                break
            time.sleep(0.05)
    return our_live, kafka_live


@pytest.mark.parametrize("key", MODULES, ids=MODULES.get)
def test_kafka_says_the_same(both: tuple[Live, Live], key: int) -> None:
    versions = answered(key)
    assert versions is not None
    kind = request_class(key)
    for version in range(max(versions.first, _FIRST.get(key, 0)), versions.last + 1):
        for seed in range(rounds(6)):
            asked = [any_request(kind, version, seed, each) for each in both]
            ours, kafkas = (
                each.ask(request, key, version) for each, request in zip(both, asked, strict=True)
            )
            found = loose_differences(ours, kafkas, _FREE)
            assert not found, f"version {version}, seed {seed}: {asked[0]}"
