"""GROUP BY: groups, and aggregates of each."""
