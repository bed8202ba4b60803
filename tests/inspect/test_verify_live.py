"""What `verify` finds in the directories of a Kafka that runs."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from kraftline.schema.api.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from tests.inspect.damage import findings
from tests.node.running import RealKafka
from tests.recorder.live import Live

pytestmark = pytest.mark.oracle

ALTER_USER_SCRAM_CREDENTIALS = 51


def test_kafka_loses_a_user_who_replaced_the_last_one(tmp_path: Path) -> None:
    """Whether it does depends on their names."""
    settings = {"metadata.log.max.record.bytes.between.snapshots": "500"}
    with RealKafka(tmp_path, settings) as kafka, Live(kafka.bootstrap) as live:
        replace_user(live, None, "user1")
        replace_user(live, "user1", "user2")
        live.create_topics(**{f"topic-{n}": 1 for n in range(20)})
        metadata = kafka.data / "__cluster_metadata-0"
        end = time.monotonic() + 30
        found = findings(metadata)
        while not found and time.monotonic() < end:
            time.sleep(0.1)
            found = findings(metadata)
    (lost,) = {each.problem.partition(": ")[2] for each in found}
    assert "the SCRAM credential of user2" in lost
    assert "Kafka may lose a user who comes in the place of the last one" in lost


def replace_user(live: Live, old: str | None, new: str) -> None:
    user = ScramCredentialUpsertion(
        name=new, mechanism=1, iterations=4096, salt=b"salt" * 4, salted_password=b"key" * 9
    )
    gone = () if old is None else (ScramCredentialDeletion(name=old, mechanism=1),)
    asked = AlterUserScramCredentialsRequest(deletions=gone, upsertions=(user,))
    said = live.ask(asked, ALTER_USER_SCRAM_CREDENTIALS, 0)
    assert isinstance(said, AlterUserScramCredentialsResponse)
    assert not any(each.error_code for each in said.results)
