"""Names and types: a tree of the grammar to a bound statement, one file for each concern."""
