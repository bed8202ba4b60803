"""Tests of missing permissions, also when the tests run as root, who may read everything."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NOBODY = 65534


@contextmanager
def open_directory() -> Iterator[Path]:
    """A directory that any user can reach, which pytest's own are not."""
    folder = Path(tempfile.mkdtemp(prefix="kraftline-"))
    try:
        folder.chmod(0o755)
        yield folder
    finally:
        for found in [folder, *folder.rglob("*")]:
            if found.is_dir():
                found.chmod(0o755)
        shutil.rmtree(folder)


@contextmanager
def another_user() -> Iterator[None]:
    """Root becomes nobody for a while; anybody else stays who they are.

    What is imported for the first time in here may be out of reach: use it once before.
    """
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
