"""The archive beside the broker: history brought back to shards, and answers that reach into it."""
