"""Benchmarks, one file each, named after the figure, table or target they measure; never shipped."""
