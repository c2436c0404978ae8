"""Vectorised evaluation, one file for each family of expressions."""
