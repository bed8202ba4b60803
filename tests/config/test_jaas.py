"""JAAS entries as Kafka's parser reads them, and the settings of SASL listeners that are made of
them."""

from __future__ import annotations

import pytest

from kraftline.config.effective import Config
from kraftline.config.jaas import BadJaas, read_jaas
from kraftline.config.sasl import sasl_settings
from kraftline.config.values import BadConfig
from tests.oracle.lines import LineProgram, Refused

TEXTS = (
    "a.B required;",
    'a.B required user_a="x" user_b="y z;=";',
    "a.B REQUISITE user_a='x' k=plain-word;",
    'a.B optional k="a\\"b\\\\c\\n\\101\\12";',
    'a.B required k="v" // comment\n;',
    'a.B required /* more\nlines */ k="v";',
    "a.B required k=v; c.D sufficient;",
    "",
    ";",
    "a.B",
    "a.B required",
    "a.B required;;",
    'a.B required k="v"',
    "a.B required k=;",
    "a.B required k;",
    "a.B required =v;",
    'a.B required k "v";',
    "a.B sometimes;",
    "a.B required k=5;",
    "a.B required k=5x;",
    "a.B required k=-x;",
    "a.B required k_$-x=$y;",
    "a.B required k='';",
    'a.B required k="tab\\tend";',
    'a.B required k="é";',
)


class JaasEntries(LineProgram):
    main = "JaasEntries"


@pytest.mark.oracle
def test_entries_are_read_as_by_kafka() -> None:
    with JaasEntries() as kafka:
        for text in TEXTS:
            try:
                theirs: object = kafka.ask({"text": text})["entries"]
            except Refused as refused:
                theirs = str(refused)
            try:
                ours: object = [
                    {"module": each.module, "options": each.options} for each in read_jaas(text)
                ]
            except BadJaas as problem:
                ours = str(problem)
            assert ours == theirs, text


JAAS = "listener.name.secure.plain.sasl.jaas.config"
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def _settings(**given: str) -> Config:
    needed = {"process.roles": "broker", "node.id": "1", "controller.listener.names": "C"}
    found = {name.replace("__", "."): text for name, text in given.items()}
    return Config({name: (text, "test") for name, text in (needed | found).items()})


def test_passwords_and_sessions_are_a_listeners_own() -> None:
    config = _settings(
        sasl__enabled__mechanisms="PLAIN,SCRAM-SHA-256",
        connections__max__reauth__ms="1000",
        **{
            JAAS: f'{LOGIN} username="x" password="y" user_a="1" user_b="2";',
            "listener.name.secure.scram-sha-256.sasl.jaas.config": "org.apache.kafka.common."
            "security.scram.ScramLoginModule required;",
            "listener.name.secure.plain.connections.max.reauth.ms": "5000",
        },
    )
    found = sasl_settings(config, "SECURE")
    assert found.passwords == {"a": "1", "b": "2"}
    assert found.session_ms == {"PLAIN": 5000, "SCRAM-SHA-256": 1000}
    assert found.failure_ms == 100
    assert "1" not in repr(found)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "GSSAPI is not supported here"),
        ({"sasl.enabled.mechanisms": "PLAIN"}, f"Set {JAAS}"),
        ({"sasl.enabled.mechanisms": "PLAIN", JAAS: "x"}, "control flag not specified"),
        ({"sasl.enabled.mechanisms": "PLAIN", JAAS: "x required;"}, "PLAIN needs org.apache"),
        (
            {"sasl.enabled.mechanisms": "PLAIN", JAAS: f"{LOGIN}; {LOGIN};"},
            "contains 2 login modules, should be 1 module",
        ),
    ],
)
def test_what_is_missing_is_said(given: dict[str, str], words: str) -> None:
    with pytest.raises(BadConfig) as caught:
        sasl_settings(_settings(**given), "SECURE")
    assert words in str(caught.value)
