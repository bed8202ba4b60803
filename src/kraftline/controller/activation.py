"""What a controller does first.

- An empty log gets the seed of the cluster, in a metadata transaction where the version has them:
  a seed may be larger than a batch. With eligible leader replicas on, the cluster's minimum of
  in-sync replicas becomes part of the metadata: what is eligible depends on it.
- A transaction that an earlier controller left open is aborted.
"""

from __future__ import annotations

from kraftline.controller.decision import Decision
from kraftline.controller.topic_configs import MIN_ISR
from kraftline.metadata.bootstrap import BootstrapMetadata
from kraftline.metadata.features import ELIGIBLE_LEADER_REPLICAS_VERSION
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.image.configs import BROKER
from kraftline.metadata.write_options import Versioned
from kraftline.schema.metadata.abort_transaction_record import AbortTransactionRecord
from kraftline.schema.metadata.begin_transaction_record import BeginTransactionRecord
from kraftline.schema.metadata.config_record import ConfigRecord
from kraftline.schema.metadata.end_transaction_record import EndTransactionRecord

_ABORT = (AbortTransactionRecord(reason="Controller failover"), 0)
_BEGIN = (BeginTransactionRecord(name="Bootstrap records"), 0)
_END = (EndTransactionRecord(), 0)


def activate(
    image: MetadataImage,
    bootstrap: BootstrapMetadata,
    *,
    min_isr: int = 1,
    in_transaction: bool = False,
) -> Decision[bool]:
    """Whether the cluster is new. `in_transaction`: the log ends inside a metadata transaction;
    `min_isr` is the node's own `min.insync.replicas`."""
    abort: list[Versioned] = [_ABORT] if in_transaction else []
    if image.features.metadata_version is not None:
        return Decision(False, abort)
    seed: list[Versioned] = [(each, 0) for each in bootstrap.records]
    if bootstrap.feature_level(ELIGIBLE_LEADER_REPLICAS_VERSION) > 0:
        least = ConfigRecord(
            resource_type=BROKER, resource_name="", name=MIN_ISR, value=str(min_isr)
        )
        seed.append((least, 0))
    has_transactions = bootstrap.metadata_version.metadata_transaction_supported
    if has_transactions:
        seed = [_BEGIN, *seed, _END]
    return Decision(True, [*abort, *seed], is_atomic=not has_transactions)
