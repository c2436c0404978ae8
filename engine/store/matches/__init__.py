"""Kept matches: for every query slot, which rows of a segment its predicate accepts."""
