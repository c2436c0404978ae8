"""What all queries that join the same sources by the same keys share: indexes, probes, composites."""
