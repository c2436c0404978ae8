"""Relational operators: what stands between the rows a scan gives and the answer."""
