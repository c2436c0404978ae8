CREATE STREAM s (ts TIMESTAMP) WITH (timestamp = 'ts', idle_timeout = '0 seconds')
