"""The results structure: for every query, which rows satisfy it, and the views that readers use."""
