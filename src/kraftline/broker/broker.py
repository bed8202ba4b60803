"""Everything that a broker's API functions need, in one place."""

from __future__ import annotations

from collections.abc import Callable

from kraftline.broker.authorization import Authorizer
from kraftline.broker.auto_topics import AutoTopics
from kraftline.broker.cache import MetadataCache
from kraftline.broker.coordinators.groups.coordinator import GroupCoordinator
from kraftline.broker.coordinators.transactions.coordinator import TransactionCoordinator
from kraftline.broker.fetch_sessions import FetchSessions
from kraftline.broker.meters import TopicMeters
from kraftline.broker.partitions import Partitions
from kraftline.broker.quotas import ClientQuotas
from kraftline.config.effective import Config
from kraftline.controller.controller import Controller


class Broker:
    """`clock` gives the time in ms. Without an `authorizer` everybody may do everything."""

    def __init__(
        self,
        *,
        node_id: int,
        cluster_id: str,
        config: Config,
        cache: MetadataCache,
        partitions: Partitions,
        controller: Controller,
        groups: GroupCoordinator,
        transactions: TransactionCoordinator,
        clock: Callable[[], int],
        authorizer: Authorizer | None = None,
        quotas: ClientQuotas | None = None,
    ) -> None:
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.config = config
        self.cache = cache
        self.partitions = partitions
        self.controller = controller
        self.groups = groups
        self.transactions = transactions
        self.clock = clock
        self.authorizer = authorizer
        self.quotas = quotas or ClientQuotas(config, clock)
        self.meters = TopicMeters(cache)
        self.auto_topics = AutoTopics(controller, config)
        self.producer_ids = transactions.producer_ids
        self.fetch_sessions = FetchSessions(
            config.whole("max.incremental.fetch.session.cache.slots"), clock
        )
        # Asked for with every request, so looked up once.
        self.fetch_max_bytes = config.whole("fetch.max.bytes")
        self.verifies_transactions = bool(config["transaction.partition.verification.enable"])
