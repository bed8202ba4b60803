"""Sessions: why one did not start is said in words, of all that Java has to say."""

from __future__ import annotations

import os

import pytest
from pyspark.sql import SparkSession

from kraftline.errors import KraftlineError
from kraftline.spark.session import local_session


def failing(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    """A JVM that says these lines and ends."""

    def start(_: object) -> SparkSession:
        os.write(2, "".join(f"{line}\n" for line in lines).encode())
        raise RuntimeError("Cannot call methods on a stopped SparkContext\n\tat py4j.Gateway")

    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", start)


def test_a_master_that_does_not_answer_is_named_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    why = "StandaloneSchedulerBackend: Application has been killed. Reason: All masters are ..."
    failing(monkeypatch, "WARNING: incubator modules", f"26/11/16 17:25:12 ERROR {why}")
    with pytest.raises(KraftlineError) as raised:
        local_session(master="spark://gone:7077")
    assert str(raised.value) == f"Spark did not start on spark://gone:7077: {why}"
    assert capfd.readouterr().err == ""


def test_where_java_names_no_error_all_that_it_said_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failing(monkeypatch, "Error: Could not find or load main class org.apache.spark.Nothing")
    with pytest.raises(KraftlineError, match="Spark did not start: Cannot call methods") as raised:
        local_session()
    assert str(raised.value).endswith("main class org.apache.spark.Nothing")


@pytest.mark.parametrize(
    ("master", "host"),
    [
        (None, "127.0.0.1"),
        ("local[2]", "127.0.0.1"),
        ("spark://127.0.0.1:7077", "127.0.0.1"),
        ("spark://spark.example:7077", None),
        ("yarn", None),
    ],
)
def test_executors_elsewhere_are_not_told_that_the_driver_is_on_their_own_machine(
    monkeypatch: pytest.MonkeyPatch, master: str | None, host: str | None
) -> None:
    chosen: dict[str, str] = {}
    monkeypatch.setattr(
        SparkSession.Builder, "getOrCreate", lambda builder: chosen.update(builder._options)
    )
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    local_session(master=master)
    assert chosen.get("spark.driver.host") == host
    assert os.environ.get("SPARK_LOCAL_IP") == host
