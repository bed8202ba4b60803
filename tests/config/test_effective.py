"""Where a node's settings come from, and what is said of keys that Kafka does not know."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftline.config.effective import Config, read_config
from kraftline.config.values import BadConfig
from kraftline.errors import KraftlineError

NODE = "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"


def config(tmp_path: Path, text: str = "", **overrides: str) -> Config:
    file = tmp_path / "server.properties"
    file.write_text(NODE + text)
    return read_config(file, {name.replace("_", "."): value for name, value in overrides.items()})


def test_an_override_goes_over_the_file_and_the_file_over_the_default(tmp_path: Path) -> None:
    found = config(tmp_path, "num.io.threads=3\nnum.network.threads = 5\n", num_io_threads="4")
    assert (found["num.io.threads"], found.setting("num.io.threads").source) == (4, "override")
    assert found["num.network.threads"] == 5
    assert found.setting("num.network.threads").source.endswith("server.properties")
    assert found.setting("num.partitions").source == "default"
    assert found["num.partitions"] == 1


def test_an_unknown_key_is_named_with_the_nearest_known_one(tmp_path: Path) -> None:
    found = config(tmp_path, "log.retention.hour=5\nmy.plugin.colour=red\n")
    remarks = list(found.remarks())
    assert remarks[0].endswith("did you mean log.retention.hours?")
    assert remarks[1] == "my.plugin.colour is not a key of Kafka's"


def test_a_topic_falls_back_to_the_first_of_the_brokers_keys_that_is_set(tmp_path: Path) -> None:
    found = config(tmp_path, "log.retention.hours=2\nlog.retention.minutes=3\n")
    assert found.topic_default("retention.ms").value == 180_000
    assert config(tmp_path).topic_default("retention.ms").value == 604_800_000
    assert config(tmp_path, "log.retention.hours=-1").topic_default("retention.ms").value == -1


def test_a_missing_required_key_is_named(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("node.id=1\ncontroller.listener.names=C\n")
    with pytest.raises(BadConfig, match=r'Missing required configuration "process.roles"'):
        read_config(file)


def test_a_bad_value_is_refused_in_kafkas_words(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="Not a number of type INT"):
        config(tmp_path, "num.io.threads=many")


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    found = config(tmp_path, "ssl.key.password=hunter2\n")
    assert found["ssl.key.password"] == "hunter2"
    assert found.setting("ssl.key.password").text == "[hidden]"


def test_a_missing_file_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(KraftlineError, match="no such file"):
        read_config(tmp_path / "nowhere.properties")
