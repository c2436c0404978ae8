"""Promising tuples: which stored rows queries with a preference look at first, and what they found."""
