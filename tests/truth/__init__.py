"""Whether what answers say of themselves is true: exact answers beside approximate ones.

:mod:`.world` has the streams, :mod:`.cases` the operator pairs, :mod:`.runs` gives queries less at random,
along every path, and compares tag and truth. ``python -m tests.truth`` prints the differences.

What is taken for granted of the data: rows come evenly over time, their values are drawn at random and do not
depend on it, windows are full, and values that are added scatter as widely as they are large. All figures are
means over instants and over samples.
"""
