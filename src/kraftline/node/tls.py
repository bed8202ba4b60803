"""TLS for a listener, from Kafka's `ssl.*` settings, its own (`listener.name.NAME.ssl.*`) first.

Stores are PEM: certificates and keys as text in the settings or in files. Java's own formats are
refused, with the commands that turn them into PEM.
"""

from __future__ import annotations

import os
import re
import ssl
from typing import Final

from kraftline.config.effective import Config
from kraftline.config.values import BadConfig

_VERSIONS: Final = {
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
_CLIENTS: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_KEY: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----", re.S
)
_CERTIFICATE: Final = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.S)


class _Settings:
    """The `ssl.*` settings of one listener."""

    def __init__(self, config: Config, listener: str) -> None:
        self._config = config
        self.listener = listener

    def __getitem__(self, name: str) -> str | None:
        found = self._config.of_listener(self.listener, name)
        if isinstance(found, list):
            return ",".join(found)
        return None if found is None or found == "" else str(found)

    def refused(self, key: str, reason: str) -> BadConfig:
        return BadConfig.said(key, f"listener {self.listener}: {reason}")


def tls_context(config: Config, listener: str) -> ssl.SSLContext:
    """BadConfig says what is missing or cannot be used."""
    settings = _Settings(config, listener)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _choose_versions(context, settings)
    suites = settings["ssl.cipher.suites"]
    if suites is not None:
        _choose_suites(context, settings, suites)
    _load_identity(context, settings)
    wanted = settings["ssl.client.auth"] or "none"
    if wanted not in _CLIENTS:
        raise settings.refused("ssl.client.auth", f"ssl.client.auth={wanted} is not known")
    context.verify_mode = _CLIENTS[wanted]
    trusted = _trusted(settings)
    if trusted is not None:
        context.load_verify_locations(cadata=trusted)
    elif wanted != "none":
        context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
    return context


def _choose_versions(context: ssl.SSLContext, settings: _Settings) -> None:
    names = (settings["ssl.enabled.protocols"] or "TLSv1.2,TLSv1.3").split(",")
    unknown = [name for name in names if name not in _VERSIONS]
    if unknown:
        raise settings.refused(
            "ssl.enabled.protocols", f"{unknown[0]} is not supported; TLSv1.2 and TLSv1.3 are"
        )
    versions = sorted(_VERSIONS[name] for name in names)
    context.minimum_version, context.maximum_version = versions[0], versions[-1]


def _choose_suites(context: ssl.SSLContext, settings: _Settings, suites: str) -> None:
    """Names of TLS 1.2 suites as Java has them; those of TLS 1.3 are all allowed."""
    wanted = [name for name in suites.split(",") if "_WITH_" in name]
    if not wanted:
        return
    names = ":".join(map(_openssl_name, wanted))
    try:
        context.set_ciphers(names)
    except ssl.SSLError:
        raise settings.refused("ssl.cipher.suites", f"none of {suites} can be used") from None


def _openssl_name(name: str) -> str:
    """TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 is ECDHE-RSA-AES128-GCM-SHA256."""
    exchange, _, cipher = name.removeprefix("TLS_").partition("_WITH_")
    exchange = "" if exchange == "RSA" else exchange.replace("_", "-") + "-"
    cipher = re.sub(r"AES_(128|256)_", r"AES\1_", cipher).replace("_CBC_", "_")
    return exchange + cipher.replace("_", "-").removesuffix("-SHA256" if "POLY" in cipher else "")


def _load_identity(context: ssl.SSLContext, settings: _Settings) -> None:
    chain, key = settings["ssl.keystore.certificate.chain"], settings["ssl.keystore.key"]
    location = settings["ssl.keystore.location"]
    if chain is None and key is None:
        if location is None:
            raise settings.refused(
                "ssl.keystore.location",
                "SSL needs a certificate: set ssl.keystore.type=PEM, and ssl.keystore.location or "
                "ssl.keystore.certificate.chain and ssl.keystore.key",
            )
        _check_type(settings, "keystore", location)
        chain = key = _read(settings, "ssl.keystore.location", location)
    elif chain is None or key is None:
        raise settings.refused(
            "ssl.keystore.key", "ssl.keystore.certificate.chain and ssl.keystore.key go together"
        )
    else:
        _check_type(settings, "keystore", None)
    certificates, private = _CERTIFICATE.findall(chain), _KEY.search(key)
    if not certificates or private is None:
        missing = "certificate" if not certificates else "private key"
        raise settings.refused("ssl.keystore.location", f"the PEM text has no {missing}")
    # OpenSSL reads files only: one in memory, which nobody else can see.
    descriptor = os.memfd_create("identity")
    try:
        os.write(descriptor, "\n".join((private[0], *certificates, "")).encode())
        password = settings["ssl.key.password"]
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=password or "")
    except (ssl.SSLError, ValueError) as problem:
        raise settings.refused(
            "ssl.keystore.key",
            f"certificate and key cannot be used: {_reason(problem)}; is ssl.key.password right?",
        ) from None
    finally:
        os.close(descriptor)


def _trusted(settings: _Settings) -> str | None:
    """The certificates of those who sign clients' certificates."""
    text, location = settings["ssl.truststore.certificates"], settings["ssl.truststore.location"]
    if text is None:
        if location is None:
            return None
        _check_type(settings, "truststore", location)
        text = _read(settings, "ssl.truststore.location", location)
    found = _CERTIFICATE.findall(text)
    if not found:
        raise settings.refused("ssl.truststore.location", "the PEM text has no certificate")
    return "\n".join(found)


def _check_type(settings: _Settings, store: str, location: str | None) -> None:
    key = f"ssl.{store}.type"
    kind = (settings[key] or "JKS").upper()
    if kind == "PEM":
        return
    file = location or "store"
    commands = f"openssl pkcs12 -in {file} -out {store}.pem -nodes"
    if kind == "JKS":
        commands = (
            f"keytool -importkeystore -srckeystore {file} -destkeystore {store}.p12 "
            f"-deststoretype PKCS12; openssl pkcs12 -in {store}.p12 -out {store}.pem -nodes"
        )
    raise settings.refused(
        key,
        f"{key}={kind} cannot be read here; set {key}=PEM and use a PEM file, which this makes: "
        f"{commands}",
    )


def _read(settings: _Settings, key: str, location: str) -> str:
    try:
        with open(location, encoding="latin-1") as file:
            return file.read()
    except OSError as problem:
        raise settings.refused(key, f"{key}={location}: {problem.strerror}") from None


def _reason(problem: Exception) -> str:
    return getattr(problem, "reason", None) or str(problem)
