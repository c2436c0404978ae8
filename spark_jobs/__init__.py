"""PySpark jobs beside the broker, around the same topics.

Every job is a package: settings that are checked when they are made, pure functions DataFrame -> DataFrame,
a module that reads and writes, a command. What all have is in the modules beside them: ``running`` for
commands, ``session``, ``streaming`` and ``checkpoint`` for streams, ``transactional`` for what executors
write to Kafka.
"""
