"""Other systems on the same rows and queries, each in a process or a database of its own."""
