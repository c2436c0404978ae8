CREATE STREAM trades (v BIGINT, at TIMESTAMP)
WITH (timestamp = 'at', topic = 'all', past_max = '30 days', create_topic = false)
