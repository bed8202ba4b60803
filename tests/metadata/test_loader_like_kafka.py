"""Our loader and snapshot generator do what Kafka's own do, to the letter but for what is said
here: in the stories that a fixture has Kafka's answers for, and where Java is at hand in random
ones."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from typing import TypeAlias

import pytest

from tests.effort import rounds
from tests.fixtures.loader.make import STORIES, read
from tests.metadata.different_stories import DIFFERENT
from tests.metadata.loader_telling import Story, Told, by_kraftline
from tests.metadata.random_loader import StoryMaker, generator_story
from tests.metadata.replaying import canonical
from tests.oracle.loader import LoaderOracle

Both: TypeAlias = "tuple[list[Told], list[Told]]"

# Java's words for what ours has in Python's.
_LEADER = re.compile(r"LeaderAndEpoch[\[(].*[\])]")
# Kafka tells of a publisher that it refuses to install, and then that it could not install it.
_AGAIN = {"fault": "Unhandled fault in MetadataLoader#installPublishers"}


@pytest.fixture(scope="module")
def oracle() -> Iterator[LoaderOracle]:
    with LoaderOracle() as program:
        yield program


@pytest.fixture(scope="module")
def kafka() -> dict[str, list[Told]]:
    return read()


def plain(told: list[Told]) -> list[Told]:
    """The same without what differs by its nature: words of a language, and the order of maps."""
    out = copy.deepcopy(told)
    for each in out:
        if "image" in each:
            each["image"] = canonical(each["image"])
        if "fault" in each:
            each["fault"] = _LEADER.sub("LeaderAndEpoch", each["fault"])
    return [each for each in out if each != _AGAIN]


def wanted(theirs: list[Told], story: Story) -> list[Told]:
    """What ours is to tell: as Kafka, with the epoch and time of the batch that an image of the
    log ends in, and a publisher that fails at first is closed."""
    out: list[Told] = []
    for each in plain(theirs):
        if "update" in each:
            offset, *_, aligned = each["provenance"]
            for first, last, epoch, time in story.batches:
                if first <= offset <= last:
                    each["provenance"] = each["ends"] = [offset, epoch, time, aligned]
        out.append(each)
        if each.get("fault", "").startswith("Unhandled error initializing "):
            out.append({"to": out[-2]["to"], "closed": True})
    return out


def hold_equal(ours: list[Told], theirs: list[Told]) -> None:
    for mine, kafkas in zip(ours, theirs, strict=False):
        assert mine == kafkas
    assert len(ours) == len(theirs)


@pytest.mark.parametrize("name", STORIES)
def test_story_is_kafkas(name: str, kafka: dict[str, list[Told]]) -> None:
    story = STORIES[name]
    hold_equal(plain(by_kraftline(story)), wanted(kafka[name], story))


@pytest.fixture
def told(request: pytest.FixtureRequest, kafka: dict[str, list[Told]]) -> Both:
    """What ours and Kafka's tell in the story that a test is named after."""
    name = request.node.name.removeprefix("test_").replace("_", " ")
    return plain(by_kraftline(DIFFERENT[name])), plain(kafka[name])


def test_aborted_before_more(told: Both) -> None:
    """Nothing is left of an aborted transaction; in Kafka all of it, if a record follows."""
    ours, theirs = map(updates, told)
    assert list(map(topics, theirs)) == ["", "ab", "abc", "abcd"]
    assert list(map(topics, ours)) == ["", "b", "b", "bd"]
    assert [each["parts"] for each in ours[1:]] == [["topics"], [], ["topics"]]
    for each in ours + theirs:
        # The second Abort's batch is before a Begin.
        del each["image"], each["parts"], each["provenance"][2], each["ends"][2]
    assert ours == theirs


def test_transaction_begins_a_batch(told: Both) -> None:
    """What is before a transaction ends in the batch before; Kafka has that one's offset with the
    epoch and time of the next."""
    ours, theirs = told
    (before,) = [each for each in theirs if each.get("provenance") == [1, 5, 1020, True]]
    before["provenance"] = before["ends"] = [1, 1, 1010, True]
    hold_equal(ours, theirs)


def test_no_metadata_version(told: Both) -> None:
    """Publishers wait for a metadata version. Kafka's wait for any record, and a commit without a
    version is then a fault."""
    ours, theirs = told
    fault = {"fault": "Unhandled fault in MetadataLoader#handleCommit. Last image offset was 1"}
    theirs.remove(fault)
    (after,) = [each for each in theirs if each.get("after") == 2]
    assert after["applied"] == 1
    after["applied"] = -1
    hold_equal(ours, theirs)


def test_begin_behind_begin(told: Both) -> None:
    """A Begin that has no place publishes nothing; Kafka publishes that the transaction began,
    with an offset inside it."""
    ours, theirs = told
    (inside,) = [each for each in theirs if each.get("provenance") == [2, 1, 1020, False]]
    assert not inside["parts"]
    theirs.remove(inside)
    for each in theirs:
        if each.get("begins") == 2:
            each["begins"] = 1
        if each.get("after") == 3:
            assert each["applied"] == 2
            each["applied"] = 1
    hold_equal(ours, theirs)


def test_caught_up_without_a_commit(told: Both) -> None:
    """Where the publishers are is known once they have had their first image; Kafka says so only
    after the next commit."""
    ours, theirs = told
    (after,) = [each for each in theirs if each.get("after") == 4]
    assert after["applied"] == -1
    after.update(applied=19, version=30, levels={"metadata.version": 30})
    hold_equal(ours, theirs)


def test_one_name_twice_in_a_list(told: Both) -> None:
    """Neither is installed; Kafka forgets the first, and never closes it."""
    ours, theirs = told
    words = (
        "Attempted to install a new publisher named q, but there is already a publisher with that "
        "name."
    )
    rest = [each for each in theirs if each.get("to") != "q#2"]
    assert len(rest) < len(theirs)
    at = rest.index(next(each for each in rest if each.get("after") == 2))
    hold_equal(ours, [*rest[:at], {"fault": words}, {"refused": words}, *rest[at:]])


def test_more_than_the_version_can_write(told: Both) -> None:
    """A new publisher is told all the same; Kafka tries in vain, with every publication again."""
    ours, theirs = told
    assert [each.get("update") for each in ours if "update" in each] == ["SNAPSHOT", "LOG_DELTA"]
    faults = [each["fault"] for each in theirs if "fault" in each]
    assert faults == ["Unhandled error initializing new publishers"] * 2
    assert not updates(theirs)


def test_unreadable_record(told: Both) -> None:
    """Only that record is lost; in Kafka all of the commit from its batch on."""
    ours, theirs = told
    assert list(map(topics, updates(ours))) == ["", "abc", "abcd"]
    assert list(map(topics, updates(theirs))) == ["", "ad"]
    assert {"fault": "Error loading metadata log record from offset 3"} in ours
    assert {
        "fault": "Unhandled fault in MetadataLoader#handleCommit. Last image offset was 0"
    } in theirs


def test_partition_of_no_topic(told: Both) -> None:
    """Only that record is lost; in Kafka all of the publication."""
    ours, theirs = told
    assert list(map(topics, updates(ours))) == ["", "ab", "abc"]
    assert list(map(topics, updates(theirs))) == ["", "", "c"]
    assert {
        "fault": "Error generating new metadata image from metadata delta between offset 0 and 3"
    } in theirs
    assert [each["fault"] for each in ours if "fault" in each] == [
        "Error loading metadata log record from offset 2"
    ]


def test_last_scram_user_replaced(told: Both) -> None:
    """The new one is there; in Kafka neither is."""
    ours, theirs = (users(each) for each in told)
    assert ours == [[], ["x"], ["y"]]
    assert theirs == [[], ["x"], []]


def test_cut_snapshot(told: Both) -> None:
    """It is refused; Kafka does not miss the footer, and takes what is missing for removed."""
    ours, theirs = told
    assert list(map(topics, updates(ours))) == ["", "d", "d"]
    assert list(map(topics, updates(theirs))) == ["", "d", "a", "a"]
    assert {
        "fault": "Unhandled fault in MetadataLoader#handleLoadSnapshot. Snapshot offset was 19"
    } in ours
    assert not [each for each in theirs if "fault" in each]


def updates(told: list[Told]) -> list[Told]:
    return [each for each in told if "update" in each]


def topics(update: Told) -> str:
    found = [json.loads(record) for record in update["image"]]
    return "".join(sorted(each["data"]["name"] for each in found if each["type"] == "TOPIC_RECORD"))


def users(told: list[Told]) -> list[list[str]]:
    return [
        [
            record["data"]["name"]
            for record in map(json.loads, update["image"])
            if record["type"] == "USER_SCRAM_CREDENTIAL_RECORD"
        ]
        for update in updates(told)
    ]


@pytest.mark.oracle
def test_fixture_is_what_kafka_says_today(
    oracle: LoaderOracle, kafka: dict[str, list[Told]]
) -> None:
    for name, story in (STORIES | DIFFERENT).items():
        hold_equal(plain(oracle.tell(story.json)), plain(kafka[name]))


@pytest.mark.oracle
def test_random_story_is_kafkas(oracle: LoaderOracle) -> None:
    told = 0
    for seed in range(rounds(120)):
        story = StoryMaker(seed).make()
        theirs = wanted(oracle.tell(story.json), story)
        told += len(updates(theirs))
        hold_equal(plain(by_kraftline(story)), theirs)
    assert told > 400


@pytest.mark.oracle
def test_aborted_transactions_leave_what_kafka_leaves_if_its_commits_end_there(
    oracle: LoaderOracle,
) -> None:
    aborted = 0
    for seed in range(rounds(40)):
        story = StoryMaker(seed, aborts_anywhere=True).commits()
        cut = StoryMaker(seed, aborts_anywhere=True, cut=True).commits()
        aborted += len(cut.steps) - len(story.steps)
        ours, theirs = plain(by_kraftline(story)), plain(oracle.tell(cut.json))
        mine, kafkas = updates(ours)[-1], updates(theirs)[-1]
        assert mine["provenance"][0] == kafkas["provenance"][0], seed
        assert mine["image"] == kafkas["image"], seed
    assert aborted > 20


@pytest.mark.oracle
def test_random_story_of_the_generator_is_kafkas(oracle: LoaderOracle) -> None:
    emitted = 0
    for seed in range(rounds(60)):
        story = generator_story(seed)
        theirs = wanted(oracle.tell(story.json), story)
        emitted += sum("emit" in each for each in theirs)
        hold_equal(plain(by_kraftline(story)), theirs)
    assert emitted > 80
