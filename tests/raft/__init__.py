"""The metadata log of a single voter."""
