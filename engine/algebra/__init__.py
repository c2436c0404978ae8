"""The operators of a query, a folder each: ``engine.algebra.<operator>``.

    stage     what it means: a stage of a bound query, and what is true of it whoever asks
    pattern   in which way its rows come and go
    text      how it is shown, written in plan files, and refused
    lazy      its evaluation at an instant
    key       which of its columns tell its rows apart
    parts     what it gives where each shard has a part of the rows
    node      its operator of a graph
    cost      how many rows it gives, and how many values its state goes by
    rewrites  the stages that may stand instead of it and those beside it
    flow      what becomes of its answer where rows are missing

A file stands on the floor of whoever asks it, and imports only what stands below that floor (the contracts of
pyproject.toml). :mod:`engine.algebra.operators` lists the operators, a line each;
:mod:`engine.algebra.rules` finds what an operator says to a question. Nobody else branches over operators.
"""
