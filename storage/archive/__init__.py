"""The archive: Delta tables of what passed through the topics.

Spark jobs write it, here it is read without Spark. :mod:`storage.archive.layout` says where tables are and
what they hold, :mod:`storage.archive.coverage` which records of a topic they have,
:mod:`storage.archive.reader` gives their rows back as batches of the engine.
"""
