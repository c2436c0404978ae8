"""Rows and what is known about them, kept by row: only here is memory taken row by row."""
