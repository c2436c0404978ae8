"""How much memory the worker may use, how much it does, and what follows from that."""
