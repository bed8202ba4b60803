"""The MBeans of a running Kafka, and their names by the usual rules of the JMX exporter."""

from __future__ import annotations

import re
import subprocess

from tests.oracle.java import run
from tests.oracle.kafka import HOST, free_ports

_BEAN = re.compile(r"^(?P<domain>[^:]+):type=(?P<type>[^,]+)(?P<rest>.*):(?P<attribute>[^:]+)$")
_RATE = re.compile(r"PerSec$")


def open_jmx(pid: int) -> str:
    """Let a running JVM be asked over a free port of this machine; where to ask."""
    (port,) = free_ports(1)
    arguments = [f"jmxremote.port={port}", "jmxremote.authenticate=false", "jmxremote.ssl=false"]
    arguments.append(f"jmxremote.host={HOST}")
    done = subprocess.run(
        ["jcmd", str(pid), "ManagementAgent.start", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "Command executed successfully" in done.stdout, done.stdout + done.stderr
    return f"service:jmx:rmi:///jndi/rmi://{HOST}:{port}/jmxrmi"


def values(url: str) -> dict[str, str]:
    """Every attribute of Kafka's MBeans, by `name:attribute`."""
    said = run(
        "org.apache.kafka.tools.JmxTool",
        ["--jmx-url", url, "--one-time", "--report-format", "properties"],
    )
    found = {}
    for line in said.splitlines():
        name, equals, value = line.rpartition("=")
        if equals and name.startswith("kafka."):
            found[name] = value
    return found


def exported(bean: str) -> str | None:
    """The name of an MBean's attribute at Prometheus; None where the rules pass it over."""
    match = _BEAN.match(bean)
    if match is None:
        return None
    keys = dict(each.partition("=")[::2] for each in match["rest"].split(",") if each)
    name, attribute = keys.get("name"), match["attribute"]
    parts = [match["domain"].replace(".", "_"), match["type"]]
    if name is None:
        parts.append(attribute)
    elif attribute == "Count" and _RATE.search(name):
        parts += [_RATE.sub("", name), "total"]
    elif attribute in ("Value", "50thPercentile"):
        parts.append(name)
    elif attribute == "Count":
        parts += [name, "count"]
    else:
        return None
    return "_".join(parts).replace("-", "_").lower()
