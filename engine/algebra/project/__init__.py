"""SELECT: columns computed row by row."""
