"""Scale-out without Spark."""
