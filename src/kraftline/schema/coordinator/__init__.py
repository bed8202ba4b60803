"""Records of the coordinators' topics: groups and offsets, transactions, share groups."""
