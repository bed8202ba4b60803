"""A broker: its metadata cache, its partitions, its life in the cluster, and an API to a file."""
