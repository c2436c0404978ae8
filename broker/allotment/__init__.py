"""What entities are given: memory shared out where it is short, and what an edit of theirs will do."""
