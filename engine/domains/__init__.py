"""The domain of a column: its values as ordered integers, predicates as regions of it."""
