"""Transactions of producers: `__transaction_state`."""
