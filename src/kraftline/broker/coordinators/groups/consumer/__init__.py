"""Groups of the new protocol (KIP-848): the coordinator assigns, members reconcile by heartbeats.

`group` is what the records say of a group. `heartbeat`, `leaving`, `classic_members` and `moves`
decide: they look at a group and return records. `desk` writes them, keeps the timers and answers.
"""
