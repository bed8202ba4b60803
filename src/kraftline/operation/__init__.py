"""What people who run a node look at: metrics, health, log lines."""
