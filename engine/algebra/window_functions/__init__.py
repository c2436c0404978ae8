"""Window functions: f(...) OVER (PARTITION BY ... ORDER BY ... frame)."""
