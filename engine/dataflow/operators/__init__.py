"""Operators over deltas, one a module."""
