"""Regular expressions match what Kafka's match, and are refused in the same words."""

from __future__ import annotations

import pytest

from kraftline.broker.coordinators.groups.consumer.regexes import check, matched
from kraftline.controller.refusal import Refusal
from kraftline.schema.api.error_codes import ErrorCode
from tests.broker.consumer_groups.deciding import GroupDecisions

pytestmark = pytest.mark.oracle

NAMES = [
    "orders",
    "orders-eu",
    "orders.us",
    "Orders",
    "a",
    "aa",
    "b1",
    "b_2",
    "topic-12",
    "x" * 249,
]
GOOD = [
    "orders.*",
    "orders",
    "order",
    "^orders$",
    "(?i)orders",
    "orders[-.](eu|us)",
    "orders\\.us",
    "a+",
    "a{2}",
    "a|b1",
    "[a-z]\\d",
    "\\w+_[[:digit:]]",
    "topic-\\d{1,3}",
    ".*",
    "",
    "(?:a|aa)",
    "(?P<name>a)",
    "\\pL+",
    "[^-.]*",
    "\\Qorders.us\\E",
    "x{249}",
    "(a*)*(a*)*b",
    "\\borders\\b.*",
]
BAD = [
    "a(b",
    "[a",
    "a**",
    "a{2000}",
    "a{3,2}",
    "\\",
    "*a",
    "+",
    "[z-a]",
    "(?=a)",
    "(?<!a)",
    "\\1",
    "(?P<n",
    "(?P<n-m>a)",
    "a)",
    "a++",
    "x{2}{3}",
    "[[:foo:]]",
    "\\pX",
    "(?z)a",
    "\\y",
]


@pytest.mark.parametrize("regex", GOOD)
def test_the_same_topics_match(regex: str, decisions: GroupDecisions) -> None:
    check(regex)
    assert sorted(matched([regex], NAMES)[regex]) == sorted(decisions.match(regex, NAMES))


@pytest.mark.parametrize("regex", BAD)
def test_what_is_wrong_is_told_in_the_same_words(regex: str, decisions: GroupDecisions) -> None:
    said = decisions.match(regex, [])
    assert isinstance(said, str)
    with pytest.raises(Refusal) as found:
        check(regex)
    assert found.value.code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert found.value.message == (
        f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {said}."
    )
    assert matched([regex], NAMES) == {regex: set()}
