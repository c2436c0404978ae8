"""Statements of other systems, written as this language has them."""
