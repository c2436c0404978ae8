"""PySpark jobs beside the broker, around the same topics.

Every job is a package: pure functions DataFrame -> DataFrame, and one module that reads and writes. Nothing
here runs Python on executors: all work is Spark's own expressions, so a cluster's workers need no package of
ours.
"""
