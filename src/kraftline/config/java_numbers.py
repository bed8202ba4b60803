"""Whole numbers as Java's `parseInt`, `parseShort` and `parseLong` read them."""

from __future__ import annotations


def java_integer(text: str, bits: int = 32) -> int | None:
    """None where Java would throw. A sign may be first; digits may be those of any script."""
    digits = text[1:] if text[:1] in ("-", "+") else text
    # Java looks at 16 bits at a time; nothing of a hundred digits is a number that fits.
    if not digits.isdecimal() or len(digits) > 100 or max(digits) > "\uffff":
        return None
    number = int(text)
    most = 1 << (bits - 1)
    return number if -most <= number < most else None
