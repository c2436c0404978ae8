"""The scalar functions that a text may call, a table for each kind: a row is a function."""
