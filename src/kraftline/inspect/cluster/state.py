"""The state while a log is replayed record by record: a delta, and what stands in it right now."""

from __future__ import annotations

from kraftline.metadata.image import MetadataDelta, MetadataImage
from kraftline.metadata.image.acls import Acl
from kraftline.metadata.image.client_quotas import QuotaEntity
from kraftline.metadata.image.configs import TOPIC, ConfigResource
from kraftline.metadata.image.delegation_tokens import DelegationToken
from kraftline.metadata.image.scram import ScramCredential, ScramUser
from kraftline.metadata.partition import PartitionRegistration
from kraftline.metadata.registrations import BrokerRegistration, ControllerRegistration
from kraftline.schema.types import Message
from kraftline.schema.uuids import Uuid


class State:
    """Answers as an image would, after each record, without making one."""

    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        self.delta = MetadataDelta(image)

    def replay(self, message: Message) -> None:
        self.delta.replay(message)

    def topic_name(self, topic_id: Uuid) -> str | None:
        topics = self.delta.topics
        if topics is not None:
            changed = topics.changed.get(topic_id)
            if changed is not None:
                return changed.name
            if topic_id in topics.deleted:
                return None
        found = self.image.topics.by_id.get(topic_id)
        return None if found is None else found.name

    def partition(self, topic_id: Uuid, partition: int) -> PartitionRegistration | None:
        topics = self.delta.topics
        if topics is not None:
            changed = topics.changed.get(topic_id)
            if changed is not None:
                return changed.partition(partition)
            if topic_id in topics.deleted:
                return None
        return self.image.topics.partition(topic_id, partition)

    def partitions(self, topic_id: Uuid) -> dict[int, PartitionRegistration]:
        topics = self.delta.topics
        changed = None if topics is None else topics.changed.get(topic_id)
        if changed is not None:
            return {**dict(changed.image.items()), **changed.changes}
        if topics is not None and topic_id in topics.deleted:
            return {}
        found = self.image.topics.by_id.get(topic_id)
        return {} if found is None else dict(found.items())

    def broker(self, broker: int) -> BrokerRegistration | None:
        cluster = self.delta.cluster
        return self.image.cluster.brokers.get(broker) if cluster is None else cluster.broker(broker)

    def controller(self, controller: int) -> ControllerRegistration | None:
        cluster = self.delta.cluster
        if cluster is not None and controller in cluster.controllers:
            return cluster.controllers[controller]
        return self.image.cluster.controllers.get(controller)

    def config(self, resource: ConfigResource, key: str) -> str | None:
        configs = self.delta.configs
        if configs is not None:
            keys = configs.changes.get(resource)
            if keys is not None and key in keys:
                return keys[key]
        return self.image.configs.resources.get(resource, {}).get(key)

    def topic_config(self, topic: str, key: str) -> str | None:
        return self.config(ConfigResource(TOPIC, topic), key)

    def feature(self, name: str) -> int | None:
        features = self.delta.features
        if name == "metadata.version":
            version = None if features is None else features.metadata_version
            version = version or self.image.features.metadata_version
            return None if version is None else version.level
        if features is not None and name in features.changes:
            return features.changes[name]
        return self.image.features.levels.get(name)

    def quota(self, entity: QuotaEntity, key: str) -> float | None:
        quotas = self.delta.client_quotas
        if quotas is not None:
            keys = quotas.changes.get(entity)
            if keys is not None and key in keys:
                return keys[key]
        return self.image.client_quotas.entities.get(entity, {}).get(key)

    def acl(self, acl: Uuid) -> Acl | None:
        acls = self.delta.acls
        if acls is not None and acl in acls.changes:
            return acls.changes[acl]
        return self.image.acls.acls.get(acl)

    def scram(self, user: ScramUser) -> ScramCredential | None:
        scram = self.delta.scram
        if scram is not None and user in scram.changes:
            return scram.changes[user]
        return self.image.scram.credentials.get(user)

    def token(self, token: str) -> DelegationToken | None:
        tokens = self.delta.delegation_tokens
        if tokens is not None and token in tokens.changes:
            return tokens.changes[token]
        return self.image.delegation_tokens.tokens.get(token)

    @property
    def next_producer_id(self) -> int:
        ids = self.delta.producer_ids
        return self.image.producer_ids.next_producer_id if ids is None else ids.next_producer_id
