"""Listeners and their connections: frames in, answers out, in order and without growing buffers."""
