"""The incremental core: what changes in the answers of many queries, worked out from what changed below."""
