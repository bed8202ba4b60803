"""The kernel of compaction in force: compiled, or its source interpreted."""

from __future__ import annotations

from kraftline import kernels

active = kernels.load("kraftline.storage.cleaner._kernel")
