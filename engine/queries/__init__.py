"""The queries that stand, by sets of their sources: registered, planned, explained, matched."""
