"""The job ``sources``: rows of files, databases and clocks become the typed records of a stream's topic.

source (what is read, to raw rows) -> fitting (raw rows to typed ones, or a reason) -> records (typed rows to
messages) -> job, or stream (write them), or replay (writes them at a pace). Those two in the middle are pure
functions DataFrame -> DataFrame, and so is what makes raw rows of a table or of lines.
"""
