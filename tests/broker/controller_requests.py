"""What may be asked of a controller's listener without changing what others see of the cluster."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from kraftline.metadata.features import supported_features
from kraftline.schema.api.allocate_producer_ids import AllocateProducerIdsRequest
from kraftline.schema.api.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from kraftline.schema.api.api_versions import ApiVersionsRequest
from kraftline.schema.api.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from kraftline.schema.api.broker_heartbeat import BrokerHeartbeatRequest
from kraftline.schema.api.broker_registration import BrokerRegistrationRequest
from kraftline.schema.api.broker_registration import Feature as BrokerFeature
from kraftline.schema.api.controller_registration import (
    ControllerRegistrationRequest,
    Feature,
    Listener,
)
from kraftline.schema.api.create_acls import CreateAclsRequest
from kraftline.schema.api.describe_acls import DescribeAclsRequest
from kraftline.schema.api.describe_cluster import DescribeClusterRequest
from kraftline.schema.api.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kraftline.schema.api.sasl_handshake import SaslHandshakeRequest
from kraftline.schema.types import Message
from kraftline.schema.uuids import Uuid
from tests.controller.admin_stories import (
    configure,
    elect,
    feature,
    grow,
    move,
    moving,
    unregister,
)
from tests.controller.broker_stories import Known
from tests.controller.topic_requests import create, delete, topic

FAR = 4242
_TOPIC, _BROKER, _CLIENT_METRICS = 2, 4, 16
INCARNATION = Uuid(bytes([7]) * 16)


def requests(cluster_id: str) -> Iterator[tuple[Message, int]]:
    """Requests with their versions: refused ones, and some that only tell."""
    for version in range(3):
        for kind in (0, 1, 2, 3):
            for operations in (False, True):
                request = DescribeClusterRequest(
                    endpoint_type=kind, include_cluster_authorized_operations=operations
                )
                if version > 0 or kind == 1:
                    yield request, version
    for version in range(3):
        yield BrokerHeartbeatRequest(broker_id=FAR, broker_epoch=1), version
        yield BrokerHeartbeatRequest(broker_id=1, broker_epoch=10**12), version
    for version in range(5):
        registration = BrokerRegistrationRequest(
            broker_id=FAR, cluster_id="another", incarnation_id=INCARNATION
        )
        yield registration, version
        registration = msgspec.structs.replace(registration, cluster_id=cluster_id)
        yield registration, version  # without features and directories
        yield (
            msgspec.structs.replace(
                registration,
                log_dirs=(Uuid(bytes([9]) * 16),),
                features=(
                    BrokerFeature(
                        name="metadata.version", min_supported_version=1, max_supported_version=2
                    ),
                ),
            ),
            version,
        )
    yield AllocateProducerIdsRequest(broker_id=FAR, broker_epoch=1), 0
    yield AllocateProducerIdsRequest(broker_id=1, broker_epoch=10**12), 0
    yield AssignReplicasToDirsRequest(broker_id=FAR, broker_epoch=1), 0
    yield AssignReplicasToDirsRequest(broker_id=1, broker_epoch=10**12), 0
    yield from registrations_of_controllers()
    yield ApiVersionsRequest(client_software_name="", client_software_version=""), 3


def registrations_of_controllers() -> Iterator[tuple[Message, int]]:
    """The last of these is what stays: on a listener that nobody else asks through."""
    features = tuple(
        Feature(name=name, min_supported_version=low, max_supported_version=high)
        for name, (low, high) in sorted(supported_features().items())
    )
    listener = Listener(name="ELSEWHERE", host="127.0.0.1", port=19, security_protocol=0)
    whole = ControllerRegistrationRequest(
        controller_id=FAR, incarnation_id=INCARNATION, listeners=(listener,), features=features
    )
    change = msgspec.structs.replace
    yield change(whole, listeners=()), 0
    yield change(whole, listeners=(listener, change(listener, port=20))), 0
    yield change(whole, features=()), 0
    yield change(whole, features=(change(features[0], min_supported_version=90),)), 0
    yield change(whole, zk_migration_ready=True), 0
    yield whole, 0


def of_administrators() -> Iterator[tuple[Message, int]]:
    """What tools with --bootstrap-controller may ask, refused or only told."""
    known = Known()
    yield create(topic("bad/name", 2, 1)), 7
    yield create(topic("spread", 2, 3)), 7
    yield delete("nowhere"), 5
    yield configure(_TOPIC, "nowhere", ("retention.ms", 0, "5"))(known)
    yield configure(_CLIENT_METRICS, "", ("interval.ms", 0, "5"))(known)
    yield elect(0, ("nowhere", (0,)))(known)
    yield grow("nowhere", 3, [])(known)
    yield move("nowhere", (0, (1,)))(known)
    yield moving()(known)
    yield feature(("unheard.of", 1, 1))(known)
    yield unregister(FAR + 1)(known)
    for kind, name in ((_TOPIC, "nowhere"), (_BROKER, "9"), (_BROKER, "1")):
        resource = DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=("log.retention.ms",)
        )
        yield DescribeConfigsRequest(resources=(resource,)), 4
    yield DescribeAclsRequest(resource_type_filter=1, operation=1, permission_type=1), 3
    yield CreateAclsRequest(), 3
    entity = AlterClientQuotasRequestEntityData(entity_type="planet", entity_name="x")
    entry = AlterClientQuotasRequestEntryData(entity=(entity,), ops=(OpData(key="k"),))
    yield AlterClientQuotasRequest(entries=(entry,)), 1
    yield SaslHandshakeRequest(mechanism="PLAIN"), 1
