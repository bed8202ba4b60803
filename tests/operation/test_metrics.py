"""What `/metrics` says, beside what real Kafka's MBeans say of the same story."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

import kraftline
from kraftline.broker.cache import MetadataCache
from kraftline.broker.meters import TopicMeters
from kraftline.metadata.image import EMPTY, MetadataDelta, Provenance
from kraftline.node.thread import NodeThread
from kraftline.schema.metadata.topic_record import TopicRecord
from kraftline.schema.uuids import Uuid
from tests.operation.mbeans import exported, open_jmx, values
from tests.oracle.kafka import KraftCluster

LINE = re.compile(r'^([a-z_:]+)((?:\{(?:[a-z]+="(?:[^"\\]|\\.)*",?)+\})?) (-?[0-9.e+-]+)$')
# Ours alone, as every client of Prometheus has them, or because Kafka counts no such thing; and the
# sum of a summary.
OWN = re.compile(r"process_|kraftline_|.*_sum$")


@pytest.fixture
def node() -> Iterator[NodeThread]:
    with kraftline.Node({"kraftline.metrics.listener": "0"}) as running:
        yield running


def get(node: NodeThread, path: str) -> tuple[int, str]:
    assert node.node.operation is not None
    url = f"http://127.0.0.1:{node.node.operation.port}{path}"
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as problem:
        with problem:
            return problem.code, problem.read().decode()


def metrics(node: NodeThread) -> dict[str, float]:
    """By name with labels, as they are written."""
    status, text = get(node, "/metrics")
    assert status == 200
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            match = LINE.match(line)
            assert match is not None, line
            found[match[1] + match[2]] = float(match[3])
    return found


def await_leader(consumer: Consumer, topic: str) -> None:
    """Until then a request would be refused, sent again, and counted twice."""
    while True:
        try:
            consumer.get_watermark_offsets(TopicPartition(topic, 0), 30)
        except KafkaException:
            continue
        return


def tell(bootstrap: str, topic: str) -> None:
    """Three requests of ten records each, and all of it read."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False}
    )
    await_leader(consumer, topic)
    # A request has one batch of a partition, and a batch goes when it is full.
    producer = Producer(
        {"bootstrap.servers": bootstrap, "linger.ms": 60_000, "batch.num.messages": 10}
    )
    for number in range(30):
        producer.produce(topic, b"record %d" % (number % 10), partition=0)
    assert producer.flush(30) == 0
    consumer.assign([TopicPartition(topic, 0, 0)])
    assert len(consumer.consume(30, 30)) == 30
    consumer.close()


@pytest.mark.oracle
def test_metrics_have_the_names_and_counts_of_kafkas(
    node: NodeThread, kafka_4_3: KraftCluster
) -> None:
    tell(node.bootstrap, "counted")
    tell(kafka_4_3.bootstrap, "counted")
    theirs = values(open_jmx(kafka_4_3.pid(1)))
    ours = metrics(node)
    names = {exported(bean) for bean in theirs}
    unknown = {name for name in (each.partition("{")[0] for each in ours) if name not in names}
    assert {name for name in unknown if not OWN.match(name)} == set()
    of_topic = "kafka.server:type=BrokerTopicMetrics,name={},topic=counted:Count"
    for bean, name in (
        ("MessagesInPerSec", "messagesin_total"),
        ("BytesInPerSec", "bytesin_total"),
        ("TotalProduceRequestsPerSec", "totalproducerequests_total"),
        ("FailedProduceRequestsPerSec", "failedproducerequests_total"),
    ):
        key = f'kafka_server_brokertopicmetrics_{name}{{topic="counted"}}'
        their = theirs.get(of_topic.format(bean), "0")  # nothing failed: there is no bean yet
        assert ours[key] == float(their), name
    at_least = theirs[of_topic.format("BytesOutPerSec")]
    assert float(at_least) >= ours['kafka_server_brokertopicmetrics_bytesin_total{topic="counted"}']
    of_log = "kafka.log:type=Log,name={},topic=counted,partition=0:Value"
    for bean in ("Size", "LogStartOffset", "LogEndOffset", "NumLogSegments"):
        key = f'kafka_log_log_{bean.lower()}{{topic="counted",partition="0"}}'
        assert ours[key] == float(theirs[of_log.format(bean)]), bean
    for bean in ("KafkaServer,name=BrokerState", "MetadataLoader,name=CurrentMetadataVersion"):
        key = "kafka_server_" + bean.replace(",name=", "_").lower()
        assert ours[key] == float(theirs[f"kafka.server:type={bean}:Value"]), bean


def test_every_request_is_counted_by_its_api_and_version(node: NodeThread) -> None:
    tell(node.bootstrap, "orders")
    found = metrics(node)
    produced = [
        value
        for name, value in found.items()
        if name.startswith('kafka_network_requestmetrics_requests_total{request="Produce"')
    ]
    assert sum(produced) == 3
    assert found['kafka_network_requestmetrics_totaltimems_count{request="Produce"}'] == 3
    half = found['kafka_network_requestmetrics_totaltimems{request="Produce",quantile="0.5"}']
    most = found['kafka_network_requestmetrics_totaltimems{request="Produce",quantile="0.999"}']
    assert 0 < half <= most
    out = found['kafka_server_brokertopicmetrics_bytesout_total{topic="orders"}']
    assert out >= found['kafka_server_brokertopicmetrics_bytesin_total{topic="orders"}']


def test_metadata_is_counted_as_the_loader_takes_it_in(node: NodeThread) -> None:
    tell(node.bootstrap, "orders")
    loader, found = node.node.loader, metrics(node)
    while found["kraftline_metadata_loader_lag"]:  # the offsets topic is on its way
        found = metrics(node)
    applied = "kafka_server_broker_metadata_metrics_"
    batches = "kafka_server_brokermetadatalistener_metadatabatch"
    own = "kraftline_metadata_loader_"
    assert found[f"{applied}last_applied_record_offset"] == loader.last_applied_offset > 0
    assert found[f"{applied}last_applied_record_timestamp"] > 1_700_000_000_000
    assert 0 <= found[f"{applied}last_applied_record_lag_ms"] < 600_000
    assert found[f"{applied}metadata_load_error_count"] == 0
    assert found[f"{applied}metadata_apply_error_count"] == 0
    assert found["kafka_server_metadataloader_currentmetadataversion"] == 30
    assert found["kafka_server_metadataloader_currentcontrollerid"] == 1
    assert found["kafka_server_metadataloader_handleloadsnapshotcount"] == 0
    assert found[f"{batches}sizes_sum"] >= found[f"{batches}sizes_count"] > 0
    assert found[f"{batches}processingtimeus_count"] == found[f"{batches}sizes_count"]
    snapshots = "kafka_server_snapshotemitter_latestsnapshotgenerated"
    assert (found[f"{snapshots}bytes"], found[f"{snapshots}agems"] > 0) == (0, True)
    assert 0 < found[f"{own}publication_seconds_sum"] < 60
    assert found[f"{own}publication_seconds_count"] == loader.metrics.publications


def test_totals_keep_what_a_deleted_topic_had(node: NodeThread) -> None:
    tell(node.bootstrap, "orders")
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    admin.delete_topics(["orders"])["orders"].result(30)
    found = metrics(node)
    while 'kafka_server_brokertopicmetrics_messagesin_total{topic="orders"}' in found:
        found = metrics(node)
    assert found["kafka_server_brokertopicmetrics_messagesin_total"] == 30
    assert not any("orders" in name for name in found)


def test_topics_that_come_and_go_unseen_take_no_memory() -> None:
    cache = MetadataCache()
    meters = TopicMeters(cache)
    for number in range(5_000):
        topic = TopicRecord(name=f"t{number}", topic_id=Uuid(number.to_bytes(16, "big")))
        delta = MetadataDelta(EMPTY)
        delta.replay(topic)
        cache.image = delta.apply(Provenance())
        meters.of(topic.name).messages_in += 1
        meters.of(topic.topic_id).messages_in += 1
        assert len(meters._by_key) < 1_100
    assert meters.total().messages_in == 10_000
    assert list(meters.current()) == ["t4999"]


def test_odd_labels_are_escaped() -> None:
    from kraftline.operation.exposition import Family, Sample, lines

    family = Family("odd", "gauge", "Odd.", [Sample(1, {"a": 'x"\\\n'})])
    assert list(lines([family]))[-1] == 'odd{a="x\\"\\\\\\n"} 1'


def test_quantiles_are_close_to_the_truth() -> None:
    from kraftline.broker.meters import RequestMeter, quantile

    meter = RequestMeter()
    for milliseconds in range(1, 1001):
        meter.took(milliseconds / 1000)
    counts = meter.recent()
    for share in (0.5, 0.95, 0.99):
        assert quantile(counts, share) == pytest.approx(1000 * share, rel=0.2)
    assert meter.count == 1000
    assert meter.seconds == pytest.approx(500.5)
    assert quantile(RequestMeter().recent(), 0.5) == 0


def test_groups_are_counted_by_state(node: NodeThread) -> None:
    tell(node.bootstrap, "read")
    member = Consumer(
        {
            "bootstrap.servers": node.bootstrap,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    member.subscribe(["read"])
    assert len(member.consume(30, 30)) == 30
    member.commit(asynchronous=False)
    found = metrics(node)
    classic = "kafka_coordinator_group_groupmetadatamanager_"
    every = "kafka_server_group_coordinator_metrics_"
    assert found[f"{classic}numgroupsstable"] == 1
    assert found[f"{classic}numgroups"] == 1
    assert found[f"{classic}numoffsets"] == 1
    assert found[f'{every}group_count{{protocol="classic"}}'] == 1
    assert found[f'{every}num_partitions{{state="active"}}'] == 50
    assert found[f"{every}offset_commit_count"] == 1
    assert found[f"{every}group_completed_rebalance_count"] == 1
    assert found["kraftline_group_coordinator_loading_lag"] == 0
    member.close()
    assert metrics(node)[f"{classic}numgroupsempty"] == 1
