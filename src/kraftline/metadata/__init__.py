"""Cluster state: images and deltas, features, snapshots, the seed of a new cluster."""
