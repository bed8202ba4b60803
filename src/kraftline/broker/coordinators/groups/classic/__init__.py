"""Groups of the classic protocol, whose members join, elect a leader, and are told what it assigns.

`group` is what a group knows, `rebalancing` how it goes from one generation to the next, `joining`,
`syncing` and `leaving` what members ask of it, `records` what of it is kept in the topic.
"""
