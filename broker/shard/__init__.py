"""One shard: an engine with its store, its journal and its streams, in one thread."""
