"""Leaders are elected because somebody asks for it (ElectLeaders).

- PREFERRED: the first replica of a partition leads again, if it is in sync. UNCLEAN: a partition
  that has no leader gets one, even if records are lost by it.
- For all partitions at once, those that need no election are not told of.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from kraftline.controller.decision import Decision
from kraftline.controller.leaders import circumstances, may_lead_now, record_of
from kraftline.controller.partition_changes import Election, partition_change
from kraftline.controller.refusal import Refusal
from kraftline.controller.topic_configs import TopicConfigs
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.partition import NO_LEADER
from kraftline.metadata.write_options import Versioned
from kraftline.schema.api.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from kraftline.schema.api.error_codes import ErrorCode

_TYPES: Final = {0: Election.PREFERRED, 1: Election.UNCLEAN}
_NOT_NEEDED: Final = Refusal(
    ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
)
_NOT_POSSIBLE: Final = {
    Election.PREFERRED: Refusal(
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available."
    ),
    Election.UNCLEAN: Refusal(
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        "Eligible topic partition leaders are not available.",
    ),
}


def elect_leaders(
    image: MetadataImage, request: ElectLeadersRequest, configs: TopicConfigs
) -> Decision[ElectLeadersResponse]:
    if request.topic_partitions == ():
        return Decision(ElectLeadersResponse())
    election = _TYPES.get(request.election_type)
    if election is None:
        return Decision(_refused(request))
    everything = request.topic_partitions is None
    records: list[Versioned] = []
    results = []
    for name, numbers in _wanted(image, request):
        told = []
        for number in numbers:
            outcome = Refusal(ErrorCode.NONE, None)
            try:
                records.append(_elected(image, configs, name, number, election))
            except Refusal as refusal:
                outcome = refusal
            if not everything or outcome.code != ErrorCode.ELECTION_NOT_NEEDED:
                told.append(
                    PartitionResult(
                        partition_id=number,
                        error_code=outcome.code,
                        error_message=outcome.message,
                    )
                )
        results.append(ReplicaElectionResult(topic=name, partition_result=tuple(told)))
    response = ElectLeadersResponse(replica_election_results=tuple(results))
    return Decision(response, records, is_atomic=False)


def _wanted(
    image: MetadataImage, request: ElectLeadersRequest
) -> Iterable[tuple[str, Iterable[int]]]:
    if request.topic_partitions is not None:
        return [(each.topic, each.partitions) for each in request.topic_partitions]
    topics = sorted(image.topics.by_id.values(), key=lambda topic: topic.name)
    return [(topic.name, [number for number, _ in topic.items()]) for topic in topics]


def _refused(request: ElectLeadersRequest) -> ElectLeadersResponse:
    message = f"Unknown election type {request.election_type}"
    code = ErrorCode.INVALID_REQUEST
    return ElectLeadersResponse(
        error_code=code,
        replica_election_results=tuple(
            ReplicaElectionResult(
                topic=each.topic,
                partition_result=tuple(
                    PartitionResult(partition_id=number, error_code=code, error_message=message)
                    for number in each.partitions
                ),
            )
            for each in request.topic_partitions or ()
        ),
    )


def _elected(
    image: MetadataImage, configs: TopicConfigs, name: str, number: int, election: Election
) -> Versioned:
    topic_id = image.topics.ids.get(name)
    if topic_id is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    topic = image.topics.by_id[topic_id]
    partition = topic.partition(number)
    if partition is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{number}")
    is_fine = (
        partition.leader == partition.replicas[0]
        if election is Election.PREFERRED
        else partition.leader != NO_LEADER
    )
    if is_fine:
        raise _NOT_NEEDED
    around = msgspec.structs.replace(
        circumstances(image, configs, topic, may_lead_now(image)), election=election
    )
    change = partition_change(partition, around)
    if change is None:
        raise _NOT_POSSIBLE[election]
    return record_of(change, topic, number, around)
