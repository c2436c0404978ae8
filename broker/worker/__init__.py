"""The worker process: engine shards, each in a thread, and the HTTP interfaces in front of them."""
