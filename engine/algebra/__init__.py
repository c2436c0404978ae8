"""The operators of a query, a folder each: ``engine.algebra.<operator>``.

    stage    what it means: a stage of a bound query, and what is true of it whoever asks
    pattern  in which way its rows come and go
    text     how it is shown
    lazy     its evaluation at an instant
    node     its operator of a graph, and what passes it
    flow     what becomes of its answer where rows are missing

A file stands on the floor of whoever asks it, and imports only what stands below that floor (the contracts of
pyproject.toml). :mod:`engine.algebra.operators` lists the operators, a line each;
:mod:`engine.algebra.rules` finds what an operator says to a question. Nobody else is to branch over
operators.
"""
