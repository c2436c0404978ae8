"""How precise answers are that are not exact, and which use of the machine makes them most precise.

Pure functions of measured figures: :mod:`.composition` (of operators), :mod:`.resources` (what an operator
loses by what it is given), :mod:`.shape` (of a plan), :mod:`.problem` and :mod:`.allocation` (who gets how
much). STREAM, section 5.3; the formulas that the paper leaves out are derived in docs/semantics.md.
"""
