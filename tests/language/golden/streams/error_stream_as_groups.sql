CREATE STREAM s AS SELECT carrier, COUNT(*) FROM flights GROUP BY carrier
