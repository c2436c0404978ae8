CREATE STREAM clicks (id BIGINT, at TIMESTAMP) WITH (kafka_topic = 'clicks', value_format = 'json', timestamp = 'at')
