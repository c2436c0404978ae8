"""The grammar: tokens to a tree of sqlglot nodes, one file for each part of a statement."""
