"""Values as a person writes them: durations, sizes, lists; and which ones nobody should see."""

from __future__ import annotations

from collections.abc import Iterable

from kraftline.config.key import Type
from kraftline.config.tables import BROKER

HIDDEN = "[hidden]"
_MAX_LONG = 2**63 - 1
_MAX_INT = 2**31 - 1
_MS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000), ("ms", 1))
_SIZES = (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))
_DURATIONS = {"ms": 1, "seconds": 1000, "minutes": 60_000, "hours": 3_600_000}
# Keys of Kafka's type "password", also behind a listener's prefix; and what plugins call theirs.
SECRET_ENDS = (
    *(key.name for key in BROKER.values() if key.type is Type.PASSWORD),
    *("password", "passphrase", "secret", "token", "credential", "credentials"),
    *("private.key", "api.key", "access.key"),
)


def is_secret(key: str) -> bool:
    """Whether a config's value is one to hide."""
    return key.lower().endswith(SECRET_ENDS)


def config_value(key: str, value: str | None) -> str:
    """A config's value with a unit where its name tells one, exactly: nothing is rounded."""
    if value is None:
        return "not set"
    if is_secret(key):
        return HIDDEN
    if not value:
        return "empty"
    try:
        number = int(value)
    except ValueError:
        return value
    words = key.replace("_", ".").split(".")
    unit = words[-1]
    if unit in _DURATIONS:
        if number < 0 or number >= _MAX_LONG:
            return "no limit" if number == -1 or number >= _MAX_LONG else value
        return duration(number * _DURATIONS[unit])
    if unit == "bytes" or "bytes" in words:
        if number == -1 or number >= _MAX_LONG:
            return "no limit"
        return size(number)
    if number in (_MAX_LONG, _MAX_INT):
        return "no limit"
    return value


def duration(ms: int) -> str:
    """Exactly, in at most two units; else in milliseconds."""
    if ms == 0:
        return "0"
    for at, (name, unit) in enumerate(_MS):
        if ms < unit:
            continue
        whole, rest = divmod(ms, unit)
        if not rest:
            return f"{whole}{name}"
        for less, smaller in _MS[at + 1 : at + 2]:
            if rest % smaller == 0:
                return f"{whole}{name} {rest // smaller}{less}"
        break
    return f"{ms:,}ms"


def size(count: int) -> str:
    """Exactly, in the largest unit that needs at most one digit behind the point."""
    for name, unit in _SIZES:
        if count >= unit and count * 10 % unit == 0:
            whole, tenth = divmod(count * 10 // unit, 10)
            return f"{whole}.{tenth}{name}" if tenth else f"{whole}{name}"
    return f"{count:,} bytes"


def number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,}"


def numbers(values: Iterable[int]) -> str:
    """Broker ids as a list, in their own order."""
    return ", ".join(map(str, values)) or "none"


def brokers(values: Iterable[int]) -> str:
    found = list(values)
    return f"broker {found[0]}" if len(found) == 1 else f"brokers {numbers(found)}"


def plural(count: int, one: str) -> str:
    return f"{count:,} {one}" if count == 1 else f"{count:,} {one}s"


def because(reason: str | None) -> str:
    return "" if reason is None else f" because {reason}"
