"""Who a client is by its certificate: its distinguished name as Java writes it (RFC 2253), through
the rules of `ssl.principal.mapping.rules`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

# Names of OpenSSL and the keywords of RFC 2253.
_KEYWORDS: Final = {
    "commonName": "CN",
    "countryName": "C",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "streetAddress": "STREET",
    "domainComponent": "DC",
    "userId": "UID",
}
# Others go by their numbers, with their values as they are encoded: the types of text that these
# attributes commonly have.
_UTF8, _PRINTABLE, _IA5 = 0x0C, 0x13, 0x16
_NUMBERS: Final = {
    "emailAddress": ("1.2.840.113549.1.9.1", _IA5),
    "serialNumber": ("2.5.4.5", _PRINTABLE),
    "surname": ("2.5.4.4", _UTF8),
    "givenName": ("2.5.4.42", _UTF8),
    "initials": ("2.5.4.43", _UTF8),
    "generationQualifier": ("2.5.4.44", _UTF8),
    "title": ("2.5.4.12", _UTF8),
    "description": ("2.5.4.13", _UTF8),
    "dnQualifier": ("2.5.4.46", _PRINTABLE),
    "pseudonym": ("2.5.4.65", _UTF8),
}
_SPECIAL: Final = re.compile(r'([,=+"\\<>;#])')
_RULE: Final = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLIT: Final = re.compile(rf"\s*(?P<rule>{_RULE})\s*(,\s*|$)")
_REFERENCE: Final = re.compile(r"\\(?P<literal>.)|\$(?P<group>\d+)", re.S)


def distinguished_name(certificate: Mapping[str, Any]) -> str:
    """Of what Python tells of a certificate: the last part of its subject first."""
    parts: Sequence[Sequence[tuple[str, str]]] = certificate.get("subject", ())
    return ",".join("+".join(_attribute(*each) for each in part) for part in reversed(parts))


def _attribute(name: str, value: str) -> str:
    keyword = _KEYWORDS.get(name)
    if keyword is not None:
        return f"{keyword}={_escaped(value)}"
    number, kind = _NUMBERS.get(name, (name, _UTF8))
    data = value.encode()
    length = bytes((len(data),)) if len(data) < 128 else bytes((0x81, len(data)))
    return f"{number}=#{(bytes((kind,)) + length + data).hex()}"


def _escaped(value: str) -> str:
    found = _SPECIAL.sub(r"\\\1", value)
    # So are spaces at either end, each of them.
    inner = found.strip(" ")
    before, after = len(found) - len(found.lstrip(" ")), len(found) - len(found.rstrip(" "))
    return "\\ " * before + inner + "\\ " * after if inner else "\\ " * before


class _Rule(msgspec.Struct, frozen=True):
    """Without a pattern it gives back every name as it is."""

    pattern: re.Pattern[str] | None = None
    replacement: str = ""
    change: str = ""

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        found = self.pattern.sub(self._replaced, name)
        if self.change == "L":
            return found.lower()
        return found.upper() if self.change == "U" else found

    def _replaced(self, match: re.Match[str]) -> str:
        def part(reference: re.Match[str]) -> str:
            if reference["literal"] is not None:
                return reference["literal"]
            digits, rest = reference["group"], ""
            while len(digits) > 1 and int(digits) > match.re.groups:
                digits, rest = digits[:-1], digits[-1] + rest
            if int(digits) > match.re.groups:
                return reference[0]
            return (match[int(digits)] or "") + rest

        return _REFERENCE.sub(part, self.replacement)


class NameRules:
    """From Kafka's text; ValueError where it says nothing."""

    def __init__(self, text: str) -> None:
        self._rules: list[_Rule] = []
        for found in _SPLIT.finditer(text.strip()):
            by_default, pattern, replacement, change, other = found.groups()[1:6]
            if by_default is not None:
                self._rules.append(_Rule())
            elif pattern is not None:
                try:
                    self._rules.append(_Rule(re.compile(pattern), replacement, change))
                except re.error as problem:
                    raise ValueError(f"Invalid rule: {found['rule']}: {problem}") from None
            elif other:
                raise ValueError(f"Invalid rule: {other}")

    def name_of(self, distinguished: str) -> str | None:
        """None where no rule applies."""
        for rule in self._rules:
            found = rule.apply(distinguished)
            if found is not None:
                return found
        return None
