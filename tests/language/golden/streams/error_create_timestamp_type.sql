CREATE STREAM s (a INTEGER) WITH (timestamp = 'a')
