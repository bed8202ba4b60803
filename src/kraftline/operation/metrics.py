"""The metrics of a node, by the names that Kafka's MBeans get from the usual rules of Prometheus'
JMX exporter, so that dashboards made for Kafka find them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from kraftline.broker.meters import RequestMeter, TopicMeter, quantile
from kraftline.broker.partition import Partition
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.image.topics import TopicsImage
from kraftline.operation.cleaner_metrics import cleaner_metrics
from kraftline.operation.exposition import Family, Sample, one
from kraftline.operation.group_metrics import group_metrics
from kraftline.operation.loader_metrics import loader_metrics
from kraftline.operation.process import process_metrics
from kraftline.operation.sources import Sources
from kraftline.operation.transaction_metrics import transaction_metrics
from kraftline.schema.api.registry import api

_QUANTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
_TOPIC: Final = "kafka_server_brokertopicmetrics_"
_REPLICAS: Final = "kafka_server_replicamanager_"
_CONTROLLER: Final = "kafka_controller_kafkacontroller_"
# The end of a name, the field of TopicMeter, what it counts.
_BY_TOPIC: Final = (
    ("messagesin_total", "messages_in", "Records that producers sent."),
    ("bytesin_total", "bytes_in", "Bytes of records that producers sent."),
    ("bytesout_total", "bytes_out", "Bytes of records that consumers got."),
    ("totalproducerequests_total", "produces", "Partitions that producers wrote to."),
    ("totalfetchrequests_total", "fetches", "Partitions that were answered to a fetch."),
    ("failedproducerequests_total", "failed_produces", "Writes to partitions that failed."),
    ("failedfetchrequests_total", "failed_fetches", "Fetches of partitions that failed."),
    ("replicationbytesout_total", "replication_bytes_out", "Bytes that other replicas got."),
)


def families(sources: Sources) -> Iterator[Family]:
    """Everything; what is asked of partitions is counted while it is read."""
    image = sources.broker.cache.image
    yield from _topics(sources)
    yield from _replicas(sources)
    yield from _controller(sources, image)
    yield from _server(sources)
    end_offset = sources.controller.log.view.end_offset
    yield from loader_metrics(sources.loader.metrics, sources.snapshots, end_offset)
    yield from _requests(sources)
    yield from _logs(sources)
    partitions = sources.broker.partitions
    yield from cleaner_metrics(partitions.cleaner_threads, tuple(partitions.logs.values()))
    yield from group_metrics(sources.broker.groups)
    yield from transaction_metrics(sources.broker.transactions)
    yield from process_metrics()


def _topics(sources: Sources) -> Iterator[Family]:
    meters = sources.broker.meters
    total, by_topic = meters.total(), dict(meters.current())
    for name, field, help in _BY_TOPIC:
        yield Family(_TOPIC + name, "counter", help, _of_topics(field, total, by_topic))


def _of_topics(
    field: str, total: TopicMeter, by_topic: Mapping[str, TopicMeter]
) -> Iterator[Sample]:
    """All together have no label, as in Kafka."""
    yield Sample(getattr(total, field))
    for topic, meter in by_topic.items():
        yield Sample(getattr(meter, field), {"topic": topic})


def _replicas(sources: Sources) -> Iterator[Family]:
    partitions = sources.broker.partitions
    leaders = lacking = below = at = moving = 0
    for each in partitions:  # one pass: there may be many
        known = each.registration
        if known is None or not each.is_leader or each.is_offline:
            continue
        in_sync, least = len(known.isr), each.min_isr
        leaders += 1
        lacking += in_sync < len(known.replicas)
        below += in_sync < least
        at += in_sync == least
        moving += bool(known.adding_replicas or known.removing_replicas)
    led = "Partitions led here"
    for name, help, value in (
        ("partitioncount", "Partitions here.", len(partitions)),
        ("leadercount", "Partitions that this broker leads.", leaders),
        (
            "offlinereplicacount",
            "Replicas in log directories that failed.",
            partitions.offline_count,
        ),
        ("underreplicatedpartitions", f"{led} with replicas that are out of sync.", lacking),
        (
            "underminisrpartitioncount",
            f"{led} with fewer replicas in sync than min.insync.replicas.",
            below,
        ),
        (
            "atminisrpartitioncount",
            f"{led} with just as many replicas in sync as min.insync.replicas.",
            at,
        ),
        ("reassigningpartitions", f"{led} that are being reassigned.", moving),
    ):
        yield one(_REPLICAS + name, "gauge", help, value)


def _controller(sources: Sources, image: MetadataImage) -> Iterator[Family]:
    brokers = image.cluster.brokers.values()
    offline, unpreferred = _led_otherwise(image.topics)
    fenced = sum(each.fenced for each in brokers)
    committed = sources.controller.log.view.end_offset - 1
    for name, help, value in (
        ("activecontrollercount", "1 where this node decides.", 1),
        ("activebrokercount", "Brokers that are not fenced.", len(image.cluster.brokers) - fenced),
        ("fencedbrokercount", "Brokers that are fenced.", fenced),
        ("globaltopiccount", "Topics of the cluster.", len(image.topics.ids)),
        (
            "globalpartitioncount",
            "Partitions of the cluster.",
            sum(len(each.partitions) for each in image.topics.by_id.values()),
        ),
        ("offlinepartitionscount", "Partitions without a leader.", offline),
        (
            "preferredreplicaimbalancecount",
            "Partitions that another than their first replica leads.",
            unpreferred,
        ),
        ("lastcommittedrecordoffset", "The last offset that is committed.", committed),
        (
            "lastappliedrecordoffset",
            "The last offset that the controller's state has.",
            sources.controller.image.provenance.last_offset,
        ),
    ):
        yield one(_CONTROLLER + name, "gauge", help, value)


def _led_otherwise(topics: TopicsImage) -> tuple[int, int]:
    """How many partitions nobody leads, and how many another than the first replica."""
    offline = unpreferred = 0
    for topic in topics.by_id.values():
        for partition in topic.partitions:
            if partition.leader < 0:
                offline += 1
            if partition.leader != partition.replicas[0]:
                unpreferred += 1
    return offline, unpreferred


def _server(sources: Sources) -> Iterator[Family]:
    broker = sources.broker
    offline = sources.unreadable + sum(
        logs.disk.failure is not None for logs in broker.partitions.logs.values()
    )
    yield one(
        "kafka_server_kafkaserver_brokerstate",
        "gauge",
        "1 starting, 2 recovery, 3 running, 6 pending controlled shutdown, 7 shutting down.",
        int(sources.lifecycle.state),
    )
    yield one(
        "kafka_server_fetchsessioncache_numincrementalfetchsessions",
        "gauge",
        "Fetch sessions that are kept.",
        len(broker.fetch_sessions),
    )
    yield Family(
        "kafka_server_socket_server_metrics_connection_count",
        "gauge",
        "Connections that are open.",
        [Sample(each.connections, {"listener": each.name}) for each in sources.listeners],
    )
    yield one(
        "kafka_log_logmanager_offlinelogdirectorycount",
        "gauge",
        "Log directories that failed.",
        offline,
    )


def _requests(sources: Sources) -> Iterator[Family]:
    meters = [(api(key).name, version, meter) for key, version, meter in sources.requests]
    yield Family(
        "kafka_network_requestmetrics_requests_total",
        "counter",
        "Requests that were answered.",
        [
            Sample(meter.count, {"request": name, "version": str(version)})
            for name, version, meter in meters
        ],
    )
    by_name: dict[str, list[RequestMeter]] = {}
    for name, _, meter in meters:
        by_name.setdefault(name, []).append(meter)
    yield Family(
        "kafka_network_requestmetrics_totaltimems",
        "summary",
        "Milliseconds from a request's last byte to its answer, waiting included.",
        _times(by_name),
    )


def _times(by_name: Mapping[str, list[RequestMeter]]) -> Iterator[Sample]:
    for name, meters in by_name.items():
        counts = [sum(each) for each in zip(*(meter.recent() for meter in meters), strict=True)]
        for share in _QUANTILES:
            labels = {"request": name, "quantile": str(share)}
            yield Sample(round(quantile(counts, share), 3), labels)
        seconds = sum(meter.seconds for meter in meters)
        yield Sample(round(seconds * 1000, 3), {"request": name}, "_sum")
        yield Sample(sum(meter.count for meter in meters), {"request": name}, "_count")


def _logs(sources: Sources) -> Iterator[Family]:
    fields: tuple[tuple[str, str, Callable[[Partition], int]], ...] = (
        ("size", "Bytes of a partition's log.", lambda each: each.log.size),
        ("logstartoffset", "Its first offset.", lambda each: each.log.start_offset),
        ("logendoffset", "The offset that comes next.", lambda each: each.log.end_offset),
        ("numlogsegments", "Its segments.", lambda each: len(each.log.segments)),
    )
    for name, help, field in fields:
        yield Family(f"kafka_log_log_{name}", "gauge", help, _of_logs(sources, field))


def _of_logs(sources: Sources, field: Callable[[Partition], int]) -> Iterator[Sample]:
    for each in sources.broker.partitions:
        if not each.is_offline and not each.log.is_closed:
            labels = {"topic": each.log.topic, "partition": str(each.log.partition)}
            yield Sample(field(each), labels)
