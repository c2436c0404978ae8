"""Durable state of a shard: RocksDB behind the engine's interfaces of :mod:`engine.model.persistence`.

One :class:`storage.store.Store` is one directory with one owner. What it holds is a cache of the step
journal: losing it costs time, never answers.
"""
