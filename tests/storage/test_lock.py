"""The lock of a log directory, between processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kraftline.errors import NotKafka
from kraftline.storage.lock import DirectoryLock, owner

ASK = """
import sys
from kraftline.errors import NotKafka
from kraftline.storage.lock import DirectoryLock, owner
print(owner(sys.argv[1]))
try:
    DirectoryLock(sys.argv[1]).release()
    print("free")
except NotKafka as error:
    print(error)
"""


def ask(directory: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", ASK, str(directory)], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_another_process_sees_who_holds_a_directory(tmp_path: Path) -> None:
    assert ask(tmp_path) == ["None", "free"]
    with DirectoryLock(tmp_path):
        pid, refused = ask(tmp_path)
        assert pid == str(os.getpid())
        assert "another process owns" in refused
    assert ask(tmp_path) == ["None", "free"]


def test_a_directory_without_a_lock_has_no_owner(tmp_path: Path) -> None:
    assert owner(tmp_path) is None
    with pytest.raises(NotKafka, match="its directory is not there"):
        DirectoryLock(tmp_path / "gone")
