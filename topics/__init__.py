"""Everything about Kafka: an embedded node, topics, codecs, batch consumer, producers, the step journal."""
