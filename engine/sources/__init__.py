"""Sources at work: their rows, their history."""
