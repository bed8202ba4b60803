"""Topics are removed, by name or by id (DeleteTopics).

- A topic that is named twice, or once by its name and once by its id, is not removed.
- At most 10,000 are removed at once; each one more fails by itself.
- The answers come in random order: their order must not tell which topics exist.
"""

from __future__ import annotations

from collections import Counter
from random import Random

from kraftline.controller.decision import Decision
from kraftline.controller.refusal import Refusal
from kraftline.controller.topic_access import EVERYTHING, NOT_AUTHORIZED, TopicAccess
from kraftline.controller.topics import MOST_RECORDS
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.write_options import Versioned
from kraftline.schema.api.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.metadata.remove_topic_record import RemoveTopicRecord
from kraftline.schema.uuids import ZERO, Uuid

_UNKNOWN_NAME = Refusal(
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
)
_UNKNOWN_ID = Refusal(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")


def delete_topics(
    image: MetadataImage,
    request: DeleteTopicsRequest,
    random: Random,
    access: TopicAccess = EVERYTHING,
) -> Decision[DeleteTopicsResponse]:
    wanted = [
        *(DeleteTopicState(name=name) for name in request.topic_names),
        *request.topics,
    ]
    results: list[DeletableTopicResult] = []
    names, ids = _wanted(wanted, results)
    twice = _twice(wanted)
    found: dict[Uuid, str] = {}
    for topic_id in ids:
        topic = image.topics.by_id.get(topic_id)
        if topic is None:
            results.append(_failed(None, topic_id, _UNKNOWN_ID))
        elif not access.delete(topic.name):
            # Nobody is told the name of a topic that it may not see.
            name = topic.name if access.describe(topic.name) else None
            results.append(_failed(name, topic_id, NOT_AUTHORIZED))
        else:
            found[topic_id] = topic.name
    for name in names:  # whether it is there or not, as long as it may not be seen
        known = image.topics.ids.get(name)
        if not access.describe(name) or (known is not None and not access.delete(name)):
            results.append(_failed(name, ZERO, NOT_AUTHORIZED))
        elif known is None:
            results.append(_failed(name, ZERO, _UNKNOWN_NAME))
        elif known in found or known in twice:
            found.pop(known, None)
            already = "The provided topic name maps to an ID that was already supplied."
            results.append(_failed(name, known, Refusal(ErrorCode.INVALID_REQUEST, already)))
        else:
            found[known] = name
    # Which ones are too many is not for the client to know: Kafka goes by the hash of random ids.
    removed = dict(list(found.items())[:MOST_RECORDS])
    too_many = Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, None)
    results += [
        _failed(name, each, too_many) for each, name in found.items() if each not in removed
    ]
    records: list[Versioned] = [(RemoveTopicRecord(topic_id=topic_id), 0) for topic_id in removed]
    results += [DeletableTopicResult(name=name, topic_id=each) for each, name in removed.items()]
    random.shuffle(results)
    return Decision(_response(results), records)


def _wanted(
    topics: list[DeleteTopicState], results: list[DeletableTopicResult]
) -> tuple[list[str], list[Uuid]]:
    """The names and ids that are asked for once; the others get their answer here."""
    names: Counter[str] = Counter()
    ids: Counter[Uuid] = Counter()
    for each in topics:
        if each.name is None and each.topic_id == ZERO:
            message = "Neither topic name nor id were specified."
            results.append(_failed(None, ZERO, Refusal(ErrorCode.INVALID_REQUEST, message)))
        elif each.name is None:
            ids[each.topic_id] += 1
        elif each.topic_id == ZERO:
            names[each.name] += 1
        else:
            message = "You may not specify both topic name and topic id."
            refusal = Refusal(ErrorCode.INVALID_REQUEST, message)
            results.append(_failed(each.name, each.topic_id, refusal))
    for name, count in names.items():
        if count > 1:
            refusal = Refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            results.append(_failed(name, ZERO, refusal))
    for topic_id, count in ids.items():
        if count > 1:
            refusal = Refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic id.")
            results.append(_failed(None, topic_id, refusal))
    return (
        [name for name, count in names.items() if count == 1],
        [each for each, count in ids.items() if count == 1],
    )


def _twice(topics: list[DeleteTopicState]) -> set[Uuid]:
    counts = Counter(each.topic_id for each in topics if each.name is None)
    return {each for each, count in counts.items() if count > 1}


def _failed(name: str | None, topic_id: Uuid, refusal: Refusal) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=name, topic_id=topic_id, error_code=refusal.code, error_message=refusal.message
    )


def _response(results: list[DeletableTopicResult]) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(responses=tuple(results))
