"""Standing queries on executors: the registry of a service read by a Spark job instead of a broker.

    registry   what `.queries` and `.sources` say, as changes between micro-batches    (driver)
    clock      NOW and lateness of a micro-batch, as the broker's clock has them       (both sides)
    decoding   phase 1: records of Kafka -> pieces of decoded rows, and what they bring (executors)
    selections phase 2: pieces -> matches of the engine's Query SteM -> result records  (executors)
    shards     phase 2 of all other queries: an engine for each part of the keys         (executors)
    journal    micro-batches as they were decided, so that a second run decides the same

Unlike the other jobs this one runs Python on executors: they need this project installed.
"""
