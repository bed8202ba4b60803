"""What a person asks of files: what is in them, what they are, whether they are sound."""
