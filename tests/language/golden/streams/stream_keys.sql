CREATE STREAM s (id BIGINT KEY, v DOUBLE, tenant STRING NOT NULL KEY, at TIMESTAMP) WITH (key_format = 'avro', timestamp = 'at')
