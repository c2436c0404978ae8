"""Routing: which module a batch visits next, and what is known of each row in flight."""
