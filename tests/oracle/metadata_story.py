"""Things that happen to a cluster so that its metadata log has every kind of record.

Each step suits brokers 1, 2 and 3 of any release from 3.3 on; `level` is the cluster's
metadata.version where a step needs one.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from tests.oracle.driver import SASL, Driver, wait_until
from tests.oracle.kafka import KraftCluster
from tests.oracle.lines import Json, Refused


def small_logs(version: str) -> dict[str, str]:
    """Broker settings for many small segments and snapshots, and for quick fencing."""
    settings = {
        "metadata.log.max.record.bytes.between.snapshots": "9000",
        "metadata.log.segment.ms": "60000",
        "metadata.max.idle.interval.ms": "2000",
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        "replica.lag.time.max.ms": "4000",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:admin",
    }
    if version.startswith("4"):
        settings["internal.metadata.log.segment.bytes"] = "16384"
    else:
        settings["metadata.log.segment.bytes"] = "16384"
        settings["metadata.log.segment.min.bytes"] = "4096"
    if not version.startswith("3.3"):
        settings["metadata.log.max.snapshot.interval.ms"] = "25000"
        settings["delegation.token.secret.key"] = "kraftline"
    return settings


def topics(driver: Driver, prefix: str = "") -> None:
    """Create, configure, grow and delete topics."""
    orders = f"{prefix}orders"
    driver.do(
        "createTopic",
        name=orders,
        assignments=[[1, 2, 3], [2, 3, 1], [3, 1, 2]],
        configs={"min.insync.replicas": "2", "retention.ms": "86400000"},
    )
    driver.do("createTopic", name=f"{prefix}payments.v1_a", partitions=2, replication=2)
    driver.do("createTopic", name=f"{prefix}single", assignments=[[3]])
    driver.do(
        "createTopic", name=f"{prefix}short-lived", partitions=2, configs={"retention.ms": "1"}
    )
    driver.do("createPartitions", name=orders, count=4)
    driver.do(
        "config",
        type="topic",
        name=orders,
        set={"cleanup.policy": "compact", "max.message.bytes": "2000000"},
        delete=["retention.ms"],
    )
    driver.wait_isr(orders, 3)
    driver.do("deleteTopic", name=f"{prefix}short-lived")


def configs(driver: Driver, version: str) -> None:
    """Configs of one broker, of all brokers, and of the newer kinds of resource."""
    driver.do("config", type="broker", name="2", set={"log.cleaner.threads": "2"})
    driver.do(
        "config", type="broker", name="", set={"background.threads": "8", "compression.type": "lz4"}
    )
    driver.do("config", type="broker", name="", delete=["compression.type"])
    if not version.startswith("3.3"):
        driver.do(
            "config",
            type="client_metrics",
            name="subscription-1",
            set={"metrics": "org.apache.kafka.consumer.", "interval.ms": "5000"},
        )
    if version.startswith("4"):
        driver.do(
            "config", type="group", name="group-1", set={"consumer.session.timeout.ms": "50000"}
        )
        driver.do("config", type="broker", name="", set={"min.insync.replicas": "1"})


def quotas(driver: Driver) -> None:
    """Set, change and remove client quotas of every kind of entity."""
    rates: dict[str, int] = {"producer_byte_rate": 1024, "consumer_byte_rate": 2048}
    for entity in (
        {"user": "alice"},
        {"user": None},
        {"client-id": "app"},
        {"user": "alice", "client-id": None},
    ):
        driver.do("quota", entity=dict(entity), set=dict(rates))
    driver.do("quota", entity={"ip": "10.0.0.1"}, set={"connection_creation_rate": 10})
    driver.do("quota", entity={"client-id": "app"}, set={"request_percentage": 12.25})
    driver.do("quota", entity={"user": "alice"}, set={"producer_byte_rate": None})


def acls(driver: Driver) -> None:
    """Create ACLs of several kinds and remove one."""
    driver.do("acl", resource="TOPIC", name="orders", principal="User:alice", operation="READ")
    driver.do("acl", resource="TOPIC", name="pay", pattern="PREFIXED", principal="User:bob",
              operation="WRITE", host="10.0.0.1", permission="DENY")  # fmt: skip
    driver.do("acl", resource="GROUP", name="*", principal="User:*", operation="READ")
    driver.do(
        "acl", resource="CLUSTER", name="kafka-cluster", principal="User:ops", operation="ALTER"
    )
    driver.do("acl", resource="TOPIC", name="orders", principal="User:alice", operation="READ",
              delete=True)  # fmt: skip


def scram_users(driver: Driver) -> None:
    """Set, change and remove SCRAM credentials (metadata.version 3.5-IV2 and later)."""
    for user, mechanism in (
        ("alice", "SCRAM-SHA-256"),
        ("alice", "SCRAM-SHA-512"),
        ("bob", "SCRAM-SHA-512"),
    ):
        driver.do("scram", user=user, mechanism=mechanism, password="pencil", iterations=4096)
    driver.do("scram", user="alice", mechanism="SCRAM-SHA-256", password="pen", iterations=8192)
    driver.do("scram", user="bob", mechanism="SCRAM-SHA-512")


def tokens(kafka: KraftCluster) -> None:
    """Create, renew and expire delegation tokens (metadata.version 3.6-IV2 and later)."""
    with Driver(kafka.sasl_bootstrap, SASL) as driver:
        kept = driver.do("createToken", renewers=["alice", "bob"])
        gone = driver.do("createToken")
        wait_until(lambda: done(driver, "renewToken", kept["hmac"]), "the token to renew")
        wait_until(lambda: done(driver, "expireToken", gone["hmac"]), "the token to expire")


def done(driver: Driver, op: str, hmac: Json) -> bool:
    """Nodes learn of a token a moment after the controller wrote it."""
    try:
        driver.do(op, hmac=hmac)
    except Refused as reason:
        if "DelegationTokenNotFound" not in str(reason):
            raise
        return False
    return True


def producer_ids(driver: Driver, topic: str) -> None:
    """An idempotent producer makes its broker ask the controller for a block of ids."""
    driver.produce(topic, [{"k": "a", "v": "1"}], producer="ids")
    driver.do("closeProducer", producer="ids")


def reassignments(driver: Driver, topic: str) -> None:
    """Move replicas, elect the preferred leader."""
    driver.do("reassign", topic=topic, partition=0, replicas=[3, 1])
    wait_until(lambda: driver.partitions(topic)[0]["replicas"] == [3, 1], "the reassignment")
    for _ in range(20):
        try:
            driver.do("elect", topic=topic, partition=0)
            break
        except Refused as reason:
            if "ElectionNotNeeded" in str(reason):
                break
            time.sleep(0.5)


def fencing(
    kafka: KraftCluster, driver: Driver, topic: str, orphan: str, cancelled: str = "cancelled"
) -> None:
    """Kill broker 3 until it is fenced, reassign onto it and cancel, let it come back."""
    kafka.kill(3)
    driver.wait_isr(topic, 2)
    driver.do("createTopic", name=cancelled, assignments=[[1]])
    driver.do("reassign", topic=cancelled, partition=0, replicas=[1, 3])
    driver.do("reassign", topic=cancelled, partition=0, replicas=None)
    wait_until(lambda: driver.partitions(orphan)[0]["leader"] == -1, "a partition without leader")
    kafka.start(3)
    driver.wait_isr(orphan, 1)


def short_isr(kafka: KraftCluster, driver: Driver, topic: str) -> None:
    """Kill brokers 2 and 3, so that in-sync replicas fall below min.insync.replicas."""
    kafka.kill(2, 3)
    driver.wait_isr(topic, 1)
    kafka.start(2, 3)
    driver.wait_isr(topic, 3)


def unregister(kafka: KraftCluster, driver: Driver, broker: int) -> None:
    """Stop a broker cleanly, unregister it, and let it register again."""
    kafka.stop(broker)
    driver.do("unregister", id=broker)
    kafka.start(broker)


def wait_for_snapshot(kafka: KraftCluster, node_id: int, more_than: int = 1) -> None:
    """Return once the node has that many snapshots and one more."""
    folder = kafka.data(node_id) / "__cluster_metadata-0"
    wait_until(lambda: len(list(folder.glob("*.checkpoint"))) > more_than, "snapshots", 90)


def add_and_remove_voter(kafka: KraftCluster, driver: Driver, node_id: int) -> None:
    """Make a running observer controller a voter, then not (kraft.version 1)."""
    directory = directory_id(kafka.data(node_id))
    host, port = kafka.controller_endpoint(node_id)

    def added() -> bool:
        try:
            driver.do("addVoter", id=node_id, directory=directory, listener="CONTROLLER",
                      host=host, port=port)  # fmt: skip
        except Refused as reason:
            return "Duplicate" in str(reason)
        return True

    # An observer that has not caught up yet is refused.
    wait_until(added, "the new voter to catch up")
    time.sleep(2)
    driver.do("removeVoter", id=node_id, directory=directory)


def directory_id(data: Path) -> str:
    """The directory id in a log directory's meta.properties."""
    for line in (data / "meta.properties").read_text().splitlines():
        if line.startswith("directory.id="):
            return line.removeprefix("directory.id=").replace("\\", "")
    raise ValueError(f"no directory.id in {data}")


def cordon(kafka: KraftCluster, driver: Driver, broker: int) -> None:
    """Cordon and uncordon a log directory of a broker (metadata.version 4.3-IV0)."""
    second = str(kafka.data(broker, 1))
    driver.do("config", type="broker", name=str(broker), set={"cordoned.log.dirs": second})
    time.sleep(2)
    driver.do("config", type="broker", name=str(broker), delete=["cordoned.log.dirs"])
    time.sleep(1)


def lost_directory(kafka: KraftCluster, driver: Driver, broker: int, topic: str) -> None:
    """Take a log directory away from a running broker, as a failed disk does."""
    shutil.rmtree(kafka.data(broker, 1))
    driver.do("createTopic", name=topic, assignments=[[broker], [broker]])
    time.sleep(8)


def topics_after_restart(driver: Driver) -> None:
    """One more topic on brokers 1 and 2, to have records in the new leader epoch."""
    driver.do("createTopic", name="after-restart", assignments=[[1, 2]])
    driver.wait_isr("after-restart", 2)
