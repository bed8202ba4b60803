"""The kernel is found, says what it is, and runs without Cython."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import kraftline

SRC = str(Path(kraftline.__file__).parent.parent)


def python(*args: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", *args],
        env={**os.environ, "PYTHONPATH": SRC, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout


def test_it_says_in_one_line_what_it_is() -> None:
    said = python("-m", "kraftline.records.kernel", KRAFTLINE_KERNEL="")
    assert said.startswith(("hot loops: compiled\n", "hot loops: no C compiler was found"))
    asked = python("-m", "kraftline.records.kernel", KRAFTLINE_KERNEL="interpreted")
    assert asked.startswith("hot loops: interpreted")


def test_it_runs_without_cython() -> None:
    script = """
import sys
sys.modules["cython"] = None
from kraftline.records import Codec, Record, batches, build_batch
records = [Record(i, i, b"k", None, (("h", b"v"),)) for i in range(3)]
for codec in Codec:
    [batch] = batches(build_batch(records, codec=codec))
    assert batch.records() == records
print("right")
"""
    assert python("-c", script, KRAFTLINE_KERNEL="interpreted") == "right\n"
