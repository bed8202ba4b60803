"""Images in sections: what is in trouble, what is hidden, the tree, Kafka's snapshot records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kraftline.inspect.cluster.health import Health
from kraftline.inspect.cluster.layout import Pen, table, tree
from kraftline.inspect.cluster.sections import SECTIONS, View
from kraftline.inspect.cluster.snapshot import snapshot_lines
from kraftline.inspect.cluster.text import image_text, image_tree
from kraftline.inspect.history import History, open_history
from kraftline.metadata.image import MetadataImage
from kraftline.schema import metadata as m
from kraftline.schema.metadata.frame import record_from_json
from kraftline.schema.types import Message
from tests.fixture_files import FIXTURES
from tests.fixtures.images.make import directories
from tests.inspect.metadata_logs import ORDERS, cluster, make_log, partition
from tests.metadata.replaying import replay, state, written

by_directory = pytest.mark.parametrize(
    "directory", directories(), ids=lambda path: "-".join(path.parts[-4:-1])
)


def image_of(tmp_path: Path, *batches: list[Message]) -> MetadataImage:
    return open_history([str(make_log(tmp_path, *cluster(), *batches))]).image()


def change(**fields: Any) -> Message:
    return m.PartitionChangeRecord(partition_id=0, topic_id=ORDERS, **fields)


def min_isr(value: str, name: str = "orders", kind: int = 2) -> Message:
    return m.ConfigRecord(
        resource_type=kind, resource_name=name, name="min.insync.replicas", value=value
    )


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([], ()),
        ([change(leader=-1, isr=())], ("offline", "under min ISR", "under-replicated")),
        ([change(isr=(1, 2))], ("under-replicated",)),
        ([change(isr=(1,))], ("at min ISR", "under-replicated")),
        ([min_isr("2"), change(isr=(1, 2))], ("at min ISR", "under-replicated")),
        ([min_isr("2"), change(isr=(1,))], ("under min ISR", "under-replicated")),
        ([min_isr("2", "", 4), change(isr=(1,))], ("under min ISR", "under-replicated")),
        ([min_isr("9"), change(isr=(1, 2, 3))], ()),
        (
            [
                change(
                    replicas=(1, 2, 3, 4),
                    adding_replicas=(4,),
                    directories=tuple(partition(0, (1, 2, 3, 4)).directories),  # type: ignore[attr-defined]  # a PartitionRecord
                )
            ],
            ("reassigning",),
        ),
        ([change(leader=2)], ("not led by the preferred replica",)),
        ([change(leader_recovery_state=1)], ("recovering",)),
    ],
)
def test_troubles(tmp_path: Path, records: list[Message], expected: tuple[str, ...]) -> None:
    image = image_of(tmp_path, records) if records else image_of(tmp_path)
    orders = image.topics.named("orders")
    assert orders is not None
    assert Health(image).of("orders", orders.partitions[0]) == expected


def test_who_is_down(tmp_path: Path) -> None:
    image = image_of(tmp_path, [m.FenceBrokerRecord(id=2, epoch=2)], [change(isr=(1, 3))])
    (found,) = Health(image).all()
    assert (found.topic, found.partition, found.down) == ("orders", 0, (2,))


def secrets(image: MetadataImage) -> list[bytes]:
    found = []
    for credential in image.scram.credentials.values():
        found += [credential.salt, credential.stored_key, credential.server_key]
    assert found
    return found


def upgraded() -> History:
    (directory,) = (path for path in directories() if path.parts[-2:-1] == ("node-4",))
    return open_history([str(directory)])


def test_secrets_are_hidden_unless_asked_for() -> None:
    history = upgraded()
    image = history.image()
    hidden = "\n".join(
        [
            *image_text(View(image), history, Pen(False)),
            *image_tree(View(image)),
            *(str(list(SECTIONS[name](View(image)))) for name in SECTIONS),
            *(line.decode() for line in snapshot_lines(image, False)),
        ]
    )
    for secret in secrets(image):
        assert secret.hex() not in hidden
        assert secret.hex() in "\n".join(image_tree(View(image, secrets=True)))
    (token,) = image.delegation_tokens.tokens
    assert token not in hidden
    for line in snapshot_lines(image, False):
        if b"SCRAM" in line:
            assert json.loads(line)["data"]["salt"] == "[hidden]"


def test_passwords_in_configs_are_hidden(tmp_path: Path) -> None:
    record = m.ConfigRecord(
        resource_type=4, resource_name="1", name="ssl.keystore.password", value="hush"
    )
    image = image_of(tmp_path, [record])
    assert "hush" not in str(SECTIONS["configs"](View(image)))
    assert "hush" in str(SECTIONS["configs"](View(image, secrets=True)))
    assert not any(b"hush" in line for line in snapshot_lines(image, False))
    for secrets in (False, True):
        history = open_history([str(tmp_path / "__cluster_metadata-0")])
        lines = image_text(View(image, secrets=secrets), history, Pen(False), sections=["configs"])
        assert any("hush" in line for line in lines) == secrets


@by_directory
def test_snapshot_records_are_those_that_make_the_image(directory: Path) -> None:
    image = open_history([str(directory)]).image()
    lines = [json.loads(line) for line in snapshot_lines(image, True)]
    assert lines == written(image)
    assert state(replay([record_from_json(line)[0] for line in lines])) == state(image)


@by_directory
def test_sections_have_everything(directory: Path) -> None:
    image = open_history([str(directory)]).image()
    counts = {name: len(list(rows(View(image)))) for name, rows in SECTIONS.items()}
    assert counts["brokers"] == len(image.cluster.brokers)
    assert counts["topics"] == len(image.topics.by_id)
    assert counts["partitions"] == sum(len(t.partitions) for t in image.topics.by_id.values())
    assert counts["configs"] == sum(map(len, image.configs.resources.values()))
    assert counts["acls"] == len(image.acls.acls)
    assert counts["scram"] == len(image.scram.credentials)
    assert counts["quotas"] == sum(map(len, image.client_quotas.entities.values()))


def test_voters_are_shown_from_where_the_log_names_them() -> None:
    """kraft.version is at offset 627, the voters behind it."""
    history = upgraded()
    (leg,) = history.legs
    view = View(history.at(leg, 628), history.quorum(leg, 628))
    assert [row["voter"] for row in SECTIONS["voters"](view)] == [1, 4, 5]
    assert {"feature": "kraft.version", "level": 1, "name": None} in SECTIONS["features"](view)
    said = "\n".join([*image_text(view, history, Pen(False)), *image_tree(view)])
    assert "Voters of the quorum (3)" in said
    assert said.count("uynJyxDvj2vaIfeJG3eonA") >= 2  # directory.id of node-4's meta.properties
    before = View(history.at(leg, 626), history.quorum(leg, 626))
    assert SECTIONS["voters"](before) == []
    lines = list(image_text(before, history, Pen(False), sections=["voters"]))
    assert "controller.quorum.voters" in lines[-1]


@pytest.mark.parametrize(
    ("end", "voters"), [("0627-0000000001", ()), ("0732-0000000002", (1, 4, 5))]
)
def test_a_snapshot_by_itself_shows_its_voters(end: str, voters: tuple[int, ...]) -> None:
    (path,) = FIXTURES.glob(f"upgraded_4_3/data/node-1/*/*{end}.checkpoint")
    history = open_history([str(path)])
    (leg,) = history.legs
    assert tuple(each.voter_id for each in history.quorum(leg, leg.last_offset).voters) == voters


def test_tables_and_trees() -> None:
    assert list(table(("a", "bb"), [("1", "x"), ("22", "")], Pen(False), right=("a",))) == [
        " a  bb",
        " 1  x",
        "22",
    ]
    assert list(tree({"a": {"b": 1}, "c": []})) == [".", "├── a", "│   └── b: 1", "└── c: -"]
    assert Pen(True).bold("x") == "\x1b[1mx\x1b[0m"
