CREATE TABLE per_carrier AS SELECT carrier, COUNT(*) AS n FROM flights [RANGE 1 HOUR] GROUP BY carrier
