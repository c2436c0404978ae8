"""State of operators, kept up to date by deltas and built again from retained rows."""
