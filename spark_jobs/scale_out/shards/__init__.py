"""The part of scale-out that keeps state: windows, groups and joins, cut by a key into shards.

Each shard is an engine of its own over the rows whose key it has; all together tell what one engine over all
rows tells. Which queries can be answered so :mod:`engine.changes.parts` says.
"""
