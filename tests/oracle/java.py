"""Run classes of a Kafka release, and compile the small programs of `java/` against it."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from tests.oracle.jars import NEWEST, OracleUnavailable, cache_root, jars

SOURCES = Path(__file__).parent / "java"


class JavaFailed(RuntimeError):
    """A Java program ended with an error; the message carries the end of its output."""


def compiled(version: str = NEWEST) -> Path:
    """Class folder of all programs in `java/`, compiled once per release and source text."""
    sources = sorted(SOURCES.glob("*.java"))
    digest = hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()
    final = cache_root() / version / f"classes-{digest[:16]}"
    if final.is_dir():
        return final
    final.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=final.parent, prefix="compile-") as scratch:
        aside = Path(scratch) / "classes"
        aside.mkdir()
        command = ["javac", "-nowarn", "-cp", f"{jars(version)}/*", "-d", str(aside)]
        command += [str(source) for source in sources]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise OracleUnavailable("no javac") from None
        if done.returncode != 0:
            raise JavaFailed(done.stderr)
        try:
            aside.rename(final)
        except OSError:
            # Another process compiled the same text first.
            if not final.is_dir():
                raise
    return final


def command_line(
    main: str,
    args: Sequence[str] = (),
    *,
    version: str = NEWEST,
    ours: bool = False,
    heap: str = "512m",
    log_level: str = "warn",
    system: Mapping[str, str] | None = None,
) -> list[str]:
    """The java command for one class; `ours` adds the programs compiled from `java/`."""
    path = f"{jars(version)}/*"
    if ours:
        path = f"{compiled(version)}{os.pathsep}{path}"
    settings = {
        "org.slf4j.simpleLogger.defaultLogLevel": log_level,
        "java.net.preferIPv4Stack": "true",
        **(system or {}),
    }
    flags = [f"-D{name}={value}" for name, value in settings.items()]
    # One short-lived JVM after another: the serial collector and C1 start fastest.
    return ["java", f"-Xmx{heap}", "-XX:+UseSerialGC", *flags, "-cp", path, main, *args]


def run(
    main: str,
    args: Sequence[str] = (),
    *,
    version: str = NEWEST,
    ours: bool = False,
    check: bool = True,
    errors: bool = False,
    stdin: str = "",
    timeout: float = 300,
    system: Mapping[str, str] | None = None,
) -> str:
    """Run a tool to its end and return what it printed; `errors` adds stderr at the end."""
    command = command_line(main, args, version=version, ours=ours, system=system)
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, check=False, timeout=timeout
    )
    if check and done.returncode != 0:
        tail = (done.stdout + done.stderr)[-4000:]
        raise JavaFailed(f"{main} ended with {done.returncode}:\n{tail}")
    return done.stdout + done.stderr if errors else done.stdout


class JavaServer:
    """A long-running Java process whose output goes to a file; ended by its own pid."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self.log = log
        self._start = log.stat().st_size if log.exists() else 0
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def running(self) -> bool:
        return self._process.poll() is None

    def output(self) -> str:
        """What this process (not an earlier one with the same log file) has printed."""
        with self.log.open("rb") as output:
            output.seek(self._start)
            return output.read().decode(errors="replace")

    def wait_for(self, text: str, timeout: float = 60) -> None:
        deadline = time.monotonic() + timeout
        while text not in self.output():
            if not self.running():
                raise JavaFailed(f"process ended before {text!r}:\n{self._complaints()}")
            if time.monotonic() > deadline:
                raise JavaFailed(f"no {text!r} within {timeout} s:\n{self._complaints()}")
            time.sleep(0.1)

    def _complaints(self) -> str:
        lines = self.output().splitlines()
        said = [line for line in lines if " ERROR " in line or "Exception" in line]
        return "\n".join([*said[:20], "...", *lines[-10:]])

    def stop(self, timeout: float = 120) -> None:
        """SIGTERM, then SIGKILL when that is not enough."""
        if self.running():
            self._process.terminate()
            try:
                self._process.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """SIGKILL: what a power cut looks like to the files."""
        if self.running():
            self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def __enter__(self) -> JavaServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
