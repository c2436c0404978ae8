"""``tureen demo-spark``: flights from files to topics, answers to an archive, and back into queries."""
