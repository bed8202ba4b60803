"""Things that happen to a cluster so that its metadata log has every kind of record."""

from __future__ import annotations

from tests.oracle.driver import Driver

SMALL_LOGS = {
    "4": {
        "metadata.log.max.record.bytes.between.snapshots": "9000",
        "metadata.log.max.snapshot.interval.ms": "25000",
        "metadata.log.segment.ms": "60000",
        "internal.metadata.log.segment.bytes": "16384",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:admin",
    },
}


def topics(driver: Driver) -> None:
    """Create, change, grow and delete topics on brokers 1, 2 and 3."""
    driver.do("createTopic", name="orders", assignments=[[1, 2, 3], [2, 3, 1], [3, 1, 2]],
        configs={"min.insync.replicas": "2", "retention.ms": "86400000"})
    driver.do("createTopic", name="päyments-ünïcode".encode("ascii", "ignore").decode(), partitions=4, replication=2)
    driver.do("createTopic", name="short-lived", partitions=2)
    driver.do("createPartitions", name="orders", count=5)
    driver.do("config", type="topic", name="orders", set={"cleanup.policy": "compact"}, delete=["retention.ms"])
    driver.do("deleteTopic", name="short-lived")

def users_quotas_acls(driver: Driver) -> None: ...
def after_restart() -> None: ...
