"""Config values and keys as text: values as Java writes them, and what a key takes, in a line."""

from __future__ import annotations

from kraftline.config.key import Key, Value
from kraftline.config.values import as_java_says


def text_of(value: Value) -> str | None:
    """As Kafka tells a value; None where there is none."""
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case list():
            return ",".join(value)
        case float():
            return as_java_says(value)
    return str(value)


def explained(key: Key) -> str:
    """What a key may hold, what it is by itself, and whether it can change on a running broker."""
    parts = [f"Takes a value of type {key.type.value}"]
    if key.choices:
        parts.append(f"one of {', '.join(key.choices)}")
    if key.least is not None and key.most is not None:
        parts.append(f"from {key.least} to {key.most}")
    elif key.least is not None:
        parts.append(f"at least {key.least}")
    elif key.most is not None:
        parts.append(f"at most {key.most}")
    if key.besides is not None:
        parts.append(f"or {key.besides}")
    said = ", ".join(parts) + "."
    if key.default:
        said += f" {key.default} if it is not set."
    if key.synonyms:
        said += f" Where it is not set, {', '.join(key.synonyms)} of the broker counts."
    return f"{said} Importance: {key.importance}."
