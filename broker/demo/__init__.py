"""``tureen demo``: real flights through a real Kafka, thousands of standing queries, an answer by handle."""
