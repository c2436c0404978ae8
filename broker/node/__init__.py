"""The node: its shards, what stands on them, and commands and requests on their way there."""
