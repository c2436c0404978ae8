"""Compaction of the archive: small files merged, result records folded to answers, retention applied.

:mod:`~spark_jobs.compact.versions` says what is folded to what, as pure functions DataFrame -> DataFrame;
:mod:`~spark_jobs.compact.job` says in which order a table is worked on, and what a killed run leaves.
"""
