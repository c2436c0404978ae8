CREATE STREAM s (a TIMESTAMP) WITH (lateness = '5 seconds')
