"""State modules: a Data SteM keeps the rows of a source, the Query SteM all queries over it."""
