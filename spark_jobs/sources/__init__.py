"""The job ``sources``: files of rows become the typed records of a stream's topic.

reading (files to raw rows) -> fitting (raw rows to typed ones, or a reason) -> records (typed rows to
messages)
-> job (writes them). The middle two are pure functions DataFrame -> DataFrame.
"""
