"""The parts of formatting: seeds, credentials, voters and ids."""

from __future__ import annotations

import base64
import contextlib
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftline.config.effective import read_config
from kraftline.errors import Corrupt, KraftlineError, Truncated
from kraftline.metadata.add_scram import parse_scram
from kraftline.metadata.bootstrap import (
    bootstrap_of,
    default_bootstrap,
    read_bootstrap,
    write_bootstrap_metadata,
)
from kraftline.metadata.features import feature_defaults, from_release
from kraftline.metadata.formatting import (
    FormatRefused,
    FormatRequest,
    format_directories,
    plan_format,
)
from kraftline.metadata.formatting_config import FormatConfig, format_config
from kraftline.metadata.formatting_request import FormatArguments, format_request
from kraftline.metadata.random_ids import random_uuid
from kraftline.metadata.voters import BadVoter, parse_voters, voters_record
from kraftline.schema.metadata.feature_level_record import FeatureLevelRecord
from kraftline.schema.metadata.frame import encode_record
from kraftline.schema.uuids import Uuid
from kraftline.storage.snapshot_file import write_bootstrap
from tests.fixture_files import FIXTURES
from tests.fixtures.formatted.cases import BASE, DIRECTORY


def test_seed_is_read_as_it_was_written(tmp_path: Path) -> None:
    version = from_release("4.0")
    user = parse_scram("SCRAM-SHA-512=[name=alice,password=secret]")
    seed = bootstrap_of(version, feature_defaults(version), [user])
    path = write_bootstrap_metadata(tmp_path, seed)
    found = read_bootstrap(tmp_path)
    assert found.records == seed.records
    assert found.metadata_version is version
    assert found.feature_level("transaction.version") == 2
    assert found.source == f"the binary bootstrap metadata file: {path}"


def test_seed_begins_with_metadata_version_and_leaves_out_kraft_version_and_zeros() -> None:
    levels = {"transaction.version": 2, "kraft.version": 1, "group.version": 0}
    seed = bootstrap_of(from_release("4.0"), levels)
    assert seed.records == (
        FeatureLevelRecord(name="metadata.version", feature_level=25),
        FeatureLevelRecord(name="transaction.version", feature_level=2),
    )


def test_directory_without_a_seed_has_the_default_of_the_release(tmp_path: Path) -> None:
    assert read_bootstrap(tmp_path) == default_bootstrap()
    assert default_bootstrap().records == (
        FeatureLevelRecord(name="metadata.version", feature_level=30),
    )


@pytest.mark.parametrize("fixture", ["metadata_3_3", "metadata_3_9", "metadata_4_3"])
def test_seeds_of_real_clusters_are_read(fixture: str) -> None:
    for path in (FIXTURES / fixture / "data").glob("*/bootstrap.checkpoint"):
        assert read_bootstrap(path.parent).feature_level("metadata.version") > 0


def test_seed_without_metadata_version_is_refused(tmp_path: Path) -> None:
    write_bootstrap(tmp_path, [encode_record(FeatureLevelRecord(name="x", feature_level=1), 0)])
    with pytest.raises(Corrupt, match=r"No FeatureLevelRecord for metadata.version"):
        read_bootstrap(tmp_path)


def test_cut_seed_is_refused(tmp_path: Path) -> None:
    path = Path(write_bootstrap_metadata(tmp_path, default_bootstrap()))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(Truncated):
        read_bootstrap(tmp_path)


def test_credential_is_that_of_the_example_of_rfc_7677() -> None:
    # Keys of user "user", password "pencil", as any implementation derives them from the RFC.
    found = parse_scram("SCRAM-SHA-256=[name=user,password=pencil,salt=W22ZaJ0SNY7soEsUEjb6gQ==]")
    assert base64.b64encode(found.stored_key) == b"WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
    assert base64.b64encode(found.server_key) == b"wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
    assert (found.mechanism, found.iterations) == (1, 4096)


def test_salts_differ_from_user_to_user() -> None:
    drawn = {parse_scram("SCRAM-SHA-256=[name=a,password=b]").salt for _ in range(3)}
    assert len(drawn) == 3
    assert min(len(salt) for salt in drawn) >= 16


def test_voters_print_as_they_are_read() -> None:
    text = f"1@[::1]:9093:{DIRECTORY},2@b.example:9094:MvDxzVmcRsaTz33bUuRU6A"
    assert ",".join(str(voter) for voter in parse_voters(text)) == text
    record = voters_record(parse_voters(text), "controller")
    assert [each.endpoints[0].name for each in record.voters] == ["CONTROLLER"] * 2


def test_reserved_id_is_no_voters_directory() -> None:
    with pytest.raises(BadVoter, match="reserved"):
        parse_voters(f"1@h:1:{Uuid((7).to_bytes(16))}")


def test_ids_are_22_characters_without_a_dash_in_front() -> None:
    drawn = {str(random_uuid()) for _ in range(2000)}
    assert len(drawn) == 2000
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", each) for each in drawn)
    assert {Uuid.parse(each)[6] >> 4 for each in drawn} == {4}


def test_ipv6_controller_can_be_standalone() -> None:
    listeners = "PLAINTEXT://:19092,CONTROLLER://[fe80::1]:19093"
    assert configured({**BASE, "listeners": listeners}).controller == ("fe80::1", 19093)


def test_interrupted_format_leaves_the_directory_unformatted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "data")
    request = FormatRequest(node_id=1, cluster_id="c", directories=(path,), metadata_log_dir=path)
    with monkeypatch.context() as broken:
        broken.setattr("kraftline.metadata.formatting.write_meta_properties", power_cut)
        with pytest.raises(KeyboardInterrupt):
            format_directories(plan_format(request))
    format_directories(plan_format(request))
    with pytest.raises(FormatRefused, match="already formatted"):
        plan_format(request)


@given(st.text(max_size=60) | st.from_regex(r"[0-9]{1,5000}@h:[0-9]{0,5000}:.{0,30}"))
def test_no_text_makes_a_parser_fail_in_its_own_way(text: str) -> None:
    asked = FormatArguments(features=(f"x={text}",), standalone=True)
    tries: list[Callable[[], object]] = [
        partial(parse_voters, text),
        partial(parse_scram, text),
        partial(parse_scram, f"SCRAM-SHA-256=[name=a,password=b,iterations={text}]"),
        partial(parse_scram, f"SCRAM-SHA-256=[name=a,password=b,salt={text}]"),
        partial(from_release, text),
        partial(format_request, configured(BASE), "c", asked),
        *(partial(configured, {**BASE, key: text}) for key in BASE),
    ]
    for each in tries:
        with contextlib.suppress(KraftlineError):
            each()


def configured(given: Mapping[str, str]) -> FormatConfig:
    return format_config(read_config(None, given))


def power_cut(*_: object) -> None:
    raise KeyboardInterrupt
