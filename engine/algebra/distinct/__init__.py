"""DISTINCT: equal rows once."""
