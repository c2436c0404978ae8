"""UNNEST: a row for each element of an ARRAY, for each entry of a MAP."""
