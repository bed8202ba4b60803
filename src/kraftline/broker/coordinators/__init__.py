"""The coordinators: what keeps its state in a compacted topic, a partition of it at a time.

`shards` has the partitions that this broker leads, `shard` is one of them, `loading` reads it.
Groups and their offsets are in `groups`, transactions in `transactions`.
"""
