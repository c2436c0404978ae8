"""Streams and result topics to the archive's Delta tables, exactly once.

:mod:`spark_jobs.archive.rows` and :mod:`spark_jobs.archive.results` turn records into rows, on executors;
:mod:`spark_jobs.archive.batch` writes the records of a micro-batch; :mod:`spark_jobs.archive.job` runs the
stream. Executors need Tureen installed: what a record means is told by the decoder that the broker has.
"""
