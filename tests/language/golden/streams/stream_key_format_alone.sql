CREATE STREAM s (id BIGINT, v DOUBLE) WITH (key_format = 'avro')
