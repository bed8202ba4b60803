"""What an API's function is given beside the request."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import msgspec

from kraftline.broker.authorization.principal import ANONYMOUS, Principal, java_host
from kraftline.controller.refusal import Refusal
from kraftline.controller.topic_access import EVERYTHING, TopicAccess
from kraftline.metadata.access import CLUSTER_NAME, OPERATIONS, Operation, Resource, bits
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.server.connection import Connection

if TYPE_CHECKING:
    from kraftline.broker.broker import Broker

PRINCIPAL = "principal"  # where a connection's state has it, once the client has said who it is


class Context(msgspec.Struct, frozen=True, gc=False):
    """Who asks, and which version; `broker` is everything that this broker has."""

    broker: Broker
    connection: Connection
    version: int
    client_id: str | None

    @property
    def listener(self) -> str:
        """The listener that the client came through: it is told addresses of the same one."""
        return self.connection.listener.name

    @property
    def principal(self) -> Principal:
        return cast(Principal, self.connection.state.get(PRINCIPAL, ANONYMOUS))

    @property
    def host(self) -> str:
        """The client's address, as Java writes it."""
        return java_host(self.connection.peer.rpartition(":")[0])

    @property
    def may_use_tokens(self) -> bool:
        """Delegation tokens are for those who have said who they are, and not by such a token."""
        return PRINCIPAL in self.connection.state and not self.principal.by_token

    @property
    def is_guarded(self) -> bool:
        """Is there an authorizer? Without one everybody may do everything."""
        return self.broker.authorizer is not None

    def may(self, operation: Operation, resource: Resource, name: str = CLUSTER_NAME) -> bool:
        """May the client do this with a resource?"""
        authorizer = self.broker.authorizer
        return authorizer is None or authorizer.allows(
            self.principal, self.host, operation, resource, name
        )

    def may_some(self, operation: Operation, resource: Resource) -> bool:
        """May it do this with any resource of the type?"""
        authorizer = self.broker.authorizer
        return authorizer is None or authorizer.allows_some(
            self.principal, self.host, operation, resource
        )

    def require(self, operation: Operation) -> None:
        """Refuse the whole request unless the client may do this with the cluster."""
        if not self.may(operation, Resource.CLUSTER):
            raise Refusal(
                ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
                f"{self.principal} is not authorized to {operation.name} the cluster.",
            )

    def topic_access(self, on_cluster: Operation) -> TopicAccess:
        """For the controller: who may do this with the cluster may do it with every topic."""
        if not self.is_guarded:
            return EVERYTHING

        def asked(operation: Operation) -> Callable[[str], bool]:
            return lambda name: self.may(operation, Resource.TOPIC, name)

        if self.may(on_cluster, Resource.CLUSTER):
            return TopicAccess(describe_configs=asked(Operation.DESCRIBE_CONFIGS))
        return TopicAccess(
            create=asked(Operation.CREATE),
            delete=asked(Operation.DELETE),
            describe=asked(Operation.DESCRIBE),
            describe_configs=asked(Operation.DESCRIBE_CONFIGS),
        )

    def operations_of_cluster(self) -> int:
        """What the client may do with the cluster, as one is told who may describe it."""
        if not self.may(Operation.DESCRIBE, Resource.CLUSTER):
            return 0
        return self.authorized_operations(Resource.CLUSTER)

    def authorized_operations(self, resource: Resource, name: str = CLUSTER_NAME) -> int:
        """What the client may do with a resource, a bit for each operation."""
        operations = OPERATIONS[resource]
        if self.broker.authorizer is None:
            return bits(operations)
        return bits(tuple(each for each in operations if self.may(each, resource, name)))
