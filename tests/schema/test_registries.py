"""The tables of messages: what is there, what was removed, and that little is imported for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kraftline.errors import Unsupported
from kraftline.schema import api, metadata
from tests.oracle.jars import NEWEST, cache_root

ROOT = Path(__file__).parents[2]


def test_all_metadata_records_are_known_by_kafkas_names() -> None:
    classes = metadata.record_classes()
    assert len(classes) == 27
    assert classes["ZK_MIGRATION_STATE_RECORD"].SPEC.key == 21
    assert classes["UNREGISTER_CONTROLLER_RECORD"] is metadata.record_class(29)
    with pytest.raises(Unsupported, match="type 6 is not known"):
        metadata.record_class(6)


def test_apis_know_their_versions_and_roles() -> None:
    fetch = api.api(1)
    assert (fetch.name, str(fetch.versions), str(fetch.flexible)) == ("Fetch", "4-18", "12+")
    assert fetch.listeners == ("broker", "controller")
    assert api.request_class(1) is api.FetchRequest
    assert api.response_class(75) is api.DescribeTopicPartitionsResponse
    assert len(api.apis()) == 89
    for one in api.apis():
        assert api.request_class(one.key).SPEC.key == one.key
        assert api.response_class(one.key).SPEC.key == one.key


def test_a_removed_api_says_so() -> None:
    with pytest.raises(Unsupported, match=r"API 4 \(LeaderAndIsr\) was removed"):
        api.api(4)


def test_headers_follow_the_flexible_versions() -> None:
    assert (api.request_header_version(1, 11), api.request_header_version(1, 12)) == (1, 2)
    assert (api.response_header_version(1, 11), api.response_header_version(1, 12)) == (0, 1)
    assert (api.request_header_version(18, 3), api.response_header_version(18, 3)) == (2, 0)
    with pytest.raises(Unsupported, match="Fetch version 99: versions 4-18 are known"):
        api.request_header_version(1, 99)


def test_reading_one_record_imports_one_record() -> None:
    program = (
        "import sys; from kraftline.schema.metadata.frame import decode_record; "
        "decode_record(b'\\x01\\x14\\x00\\x00'); "
        "print(*(m for m in sys.modules if m.startswith('kraftline.schema.metadata.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(ROOT / "src")},
    )
    assert {name.rpartition(".")[2] for name in done.stdout.split()} == {
        "frame",
        "no_op_record",
        "registry",
        "table",
    }


def test_what_is_committed_is_what_the_generator_writes() -> None:
    jars = cache_root() / NEWEST / "jars"
    if not jars.is_dir():
        pytest.skip("Kafka's jars are not at hand")
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "generate_schema.py"), str(jars), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
