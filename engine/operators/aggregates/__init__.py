"""The aggregates, as functions of the rows that count in each group."""
