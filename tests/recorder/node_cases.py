"""What a node tells about itself: ApiVersions, Metadata, DescribeCluster, DescribeTopicPartitions.

Topics that both have: `one` with 1 partition, `three` with 3, `many` with 60.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kraftline.broker.registry import MODULES
from kraftline.schema.api.api_versions import ApiVersionsRequest
from kraftline.schema.api.describe_cluster import DescribeClusterRequest
from kraftline.schema.api.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    TopicRequest,
)
from kraftline.schema.api.metadata import MetadataRequest, MetadataRequestTopic
from kraftline.schema.types import Message
from kraftline.schema.uuids import Uuid
from tests.recorder.cases import Case, Target, always

TOPICS: Final = {"one": 1, "three": 3, "many": 60}
METADATA, API_VERSIONS, DESCRIBE_CLUSTER, DESCRIBE_TOPIC_PARTITIONS = 3, 18, 60, 75


def _metadata(*names: str, creating: bool = False) -> Callable[[Target, int], Message]:
    def request(target: Target, version: int) -> Message:
        return MetadataRequest(
            topics=tuple(MetadataRequestTopic(name=name) for name in names),
            allow_auto_topic_creation=creating or version < 4,
            include_topic_authorized_operations=version >= 8,
            include_cluster_authorized_operations=8 <= version <= 10,
        )

    return request


def _by_id(*names: str | Uuid) -> Callable[[Target, int], Message]:
    def request(target: Target, version: int) -> Message:
        ids = [each if isinstance(each, Uuid) else target.topic_id(each) for each in names]
        return MetadataRequest(
            topics=tuple(MetadataRequestTopic(name=None, topic_id=each) for each in ids)
        )

    return request


def _partitions(
    *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> Callable[[Target, int], Message]:
    return always(
        DescribeTopicPartitionsRequest(
            topics=tuple(TopicRequest(name=name) for name in names),
            response_partition_limit=limit,
            cursor=None
            if cursor is None
            else DescribeTopicPartitionsRequestCursor(
                topic_name=cursor[0], partition_index=cursor[1]
            ),
        )
    )


_OUR_APIS: Final = {
    "ApiVersionsResponse.api_keys": lambda keys: [k for k in keys if k.api_key in MODULES]
}
_CLIENT: Final = ApiVersionsRequest(client_software_name="rec", client_software_version="1.0")

CASES: Final = (
    Case("api versions", API_VERSIONS, range(5), always(_CLIENT), _OUR_APIS),
    Case(
        "api versions, no software", API_VERSIONS, range(5), always(ApiVersionsRequest()), _OUR_APIS
    ),
    Case("all topics", METADATA, range(1, 14), always(MetadataRequest(topics=None))),
    Case("no topics; all in version 0", METADATA, range(14), _metadata()),
    Case("by name", METADATA, range(14), _metadata("three", "one", "many", "one")),
    Case("invalid names", METADATA, range(14), _metadata("a/b", "one", "..", "x" * 250, "é")),
    Case("unknown, not to be made", METADATA, range(4, 14), _metadata("nowhere", "one")),
    Case("by id", METADATA, range(12, 14), _by_id("three", "one", "three")),
    Case("by unknown id", METADATA, range(12, 14), _by_id(Uuid(b"an unknown topic"), "one")),
    Case("by id, too early", METADATA, range(10, 12), _by_id(Uuid(b"an unknown topic"))),
    Case("the cluster", DESCRIBE_CLUSTER, range(3), always(DescribeClusterRequest())),
    Case(
        "the cluster, with operations",
        DESCRIBE_CLUSTER,
        range(3),
        always(DescribeClusterRequest(include_cluster_authorized_operations=True)),
    ),
    Case(
        "fenced brokers",
        DESCRIBE_CLUSTER,
        range(2, 3),
        always(DescribeClusterRequest(include_fenced_brokers=True)),
    ),
    Case(
        "controllers",
        DESCRIBE_CLUSTER,
        range(1, 3),
        always(DescribeClusterRequest(endpoint_type=2)),
    ),
    Case(
        "nobody knows whom",
        DESCRIBE_CLUSTER,
        range(1, 3),
        always(DescribeClusterRequest(endpoint_type=9)),
    ),
    Case("all partitions", DESCRIBE_TOPIC_PARTITIONS, range(1), _partitions()),
    Case("a page", DESCRIBE_TOPIC_PARTITIONS, range(1), _partitions(limit=20)),
    Case(
        "the next page",
        DESCRIBE_TOPIC_PARTITIONS,
        range(1),
        _partitions(limit=20, cursor=("many", 20)),
    ),
    Case(
        "partitions by name",
        DESCRIBE_TOPIC_PARTITIONS,
        range(1),
        _partitions("three", "a/b", "one", "nowhere"),
    ),
    Case(
        "a cursor elsewhere",
        DESCRIBE_TOPIC_PARTITIONS,
        range(1),
        _partitions("three", "one", cursor=("many", 0)),
    ),
    Case("a topic without a name", DESCRIBE_TOPIC_PARTITIONS, range(1), _partitions("three", "")),
)
