"""Plans as files: a query as a graph of named operators, in JSON or YAML, beside its text in SQL."""
