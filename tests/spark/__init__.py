"""Spark jobs, on a real local Spark and a real Kafka."""
