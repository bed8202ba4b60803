"""ListTransactions (key 66), versions 0-2. KIP-664, KIP-994, KIP-1152.

- The transactional ids whose coordinator is here, of those that the client may describe.
- Filters count together: states, producer ids, from version 1 on for how many ms it has been open
  at least, from version 2 on a pattern that the whole id matches (RE2).
- States that nobody knows are told; COORDINATOR_LOAD_IN_PROGRESS while any partition is loading.
"""

from __future__ import annotations

from kraftline.broker.context import Context
from kraftline.broker.coordinators.transactions.transaction import BY_NAME, Status, Transaction
from kraftline.controller.refusal import Refusal
from kraftline.metadata.access import Operation, Resource
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)


def answer(request: ListTransactionsRequest, context: Context) -> ListTransactionsResponse:
    shards = context.broker.transactions.shards
    if shards.loading:
        raise Refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, None)
    wanted = _Wanted(request, context.broker.clock())
    found = [
        TransactionState(
            transactional_id=each.id,
            producer_id=each.producer_id,
            transaction_state=each.status.told,
        )
        for state in shards
        for each in state.transactions.values()
        if wanted.has(each) and context.may(Operation.DESCRIBE, Resource.TRANSACTIONAL_ID, each.id)
    ]
    return ListTransactionsResponse(
        unknown_state_filters=wanted.unknown, transaction_states=tuple(found)
    )


class _Wanted:
    """Which transactions a request asks for."""

    def __init__(self, request: ListTransactionsRequest, now: int) -> None:
        names = dict.fromkeys(request.state_filters)
        self.unknown = tuple(name for name in names if name not in BY_NAME)
        self._states = frozenset(BY_NAME[name] for name in names if name in BY_NAME)
        self._any_state = not names
        self._producer_ids = frozenset(request.producer_id_filters)
        # The latest time at which it may have begun.
        self._begun_before = None if request.duration_filter < 0 else now - request.duration_filter
        self._pattern = None
        if request.transactional_id_pattern:
            import re2  # type: ignore[import-untyped]  # only for those who use it; without types

            options = re2.Options()
            options.log_errors = False
            try:
                self._pattern = re2.compile(request.transactional_id_pattern, options)
            except re2.error as problem:
                raise Refusal(ErrorCode.INVALID_REGULAR_EXPRESSION, str(problem)) from problem

    def has(self, each: Transaction) -> bool:
        return (
            each.status is not Status.DEAD
            and (not self._producer_ids or each.producer_id in self._producer_ids)
            and (self._any_state or each.status in self._states)
            and (self._begun_before is None or each.started_at < self._begun_before)
            and (self._pattern is None or self._pattern.fullmatch(each.id) is not None)
        )
