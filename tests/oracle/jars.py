"""Real Kafka's jars, fetched through Maven by coordinates and kept outside the checkout.

The cache is `$KRAFTLINE_KAFKA_CACHE` or `~/.cache/kraftline/kafka`, one folder per version.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

NEWEST = "4.3.1"


class OracleUnavailable(RuntimeError):
    """Real Kafka cannot be had here; the message says why."""


@dataclass(frozen=True)
class Release:
    """One Kafka release and the Scala build it was published for."""

    version: str
    scala: str

    @property
    def coordinates(self) -> list[str]:
        kafka = "org.apache.kafka"
        wanted = [
            f"{kafka}:kafka_{self.scala}:{self.version}",
            f"{kafka}:kafka-clients:{self.version}",
        ]
        major = int(self.version.split(".")[0])
        if major >= 2:
            wanted.append(f"{kafka}:kafka-tools:{self.version}")
            wanted.append(f"{kafka}:kafka-shell:{self.version}")
        if major < 4:
            # Brokers before 4.0 touch log4j 1 classes directly at start.
            wanted.append("ch.qos.reload4j:reload4j:1.2.25")
        if major < 1:
            # Part of Java itself when these were made.
            wanted.append("javax.xml.bind:jaxb-api:2.3.1")
        wanted.append("org.slf4j:slf4j-simple:1.7.36")
        return wanted


RELEASES: dict[str, Release] = {
    release.version: release
    for release in (
        Release("4.3.1", "2.13"),
        Release("3.9.2", "2.13"),
        Release("3.3.2", "2.13"),
        Release("2.8.2", "2.13"),
        Release("0.10.2.2", "2.11"),
    )
}

# A second slf4j binding beside slf4j-simple would win or warn at random.
_OTHER_BINDINGS = ("slf4j-reload4j", "slf4j-log4j12", "log4j-slf4j", "logback-classic")


def cache_root() -> Path:
    """Where jars and compiled programs live, never inside the checkout."""
    configured = os.environ.get("KRAFTLINE_KAFKA_CACHE")
    return Path(configured) if configured else Path.home() / ".cache" / "kraftline" / "kafka"


def available() -> str | None:
    """Why oracle tests cannot run here, or None when they can."""
    for program in ("java", "javac"):
        if shutil.which(program) is None:
            return f"no {program}"
    try:
        jars(NEWEST)
    except OracleUnavailable as reason:
        return str(reason)
    return None


def jars(version: str = NEWEST) -> Path:
    """The folder with all jars of one release, fetched at the first call."""
    try:
        release = RELEASES[version]
    except KeyError:
        raise OracleUnavailable(f"Kafka {version} is not one of {', '.join(RELEASES)}") from None
    final = cache_root() / version / "jars"
    if not final.is_dir():
        _fetch(release, final)
    return final


def _fetch(release: Release, final: Path) -> None:
    if shutil.which("mvn") is None:
        raise OracleUnavailable("no mvn")
    final.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=final.parent, prefix="fetch-") as scratch:
        pom = Path(scratch) / "pom.xml"
        pom.write_text(_pom(release))
        aside = Path(scratch) / "jars"
        command = [
            "mvn",
            "-q",
            "-B",
            "-f",
            str(pom),
            "dependency:copy-dependencies",
            f"-DoutputDirectory={aside}",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            tail = (done.stdout + done.stderr).strip().splitlines()[-3:]
            raise OracleUnavailable(
                f"mvn could not fetch Kafka {release.version} (offline?): {' | '.join(tail)}"
            )
        for jar in aside.glob("*.jar"):
            if jar.name.startswith(_OTHER_BINDINGS):
                jar.unlink()
        try:
            aside.rename(final)
        except OSError:
            # Another process finished first: its folder is as good as ours.
            if not final.is_dir():
                raise


def _pom(release: Release) -> str:
    blocks = []
    for coordinate in release.coordinates:
        group, artifact, version = coordinate.split(":")
        blocks.append(
            f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
            f"<version>{version}</version></dependency>"
        )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>kraftline</groupId><artifactId>oracle</artifactId><version>1</version>"
        f"<dependencies>{''.join(blocks)}</dependencies></project>\n"
    )
