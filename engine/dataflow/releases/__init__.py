"""What constraints of streams let operators forget."""
