"""A window over the changes of a subquery: ISTREAM, DSTREAM and RSTREAM."""
