CREATE STREAM places AS SELECT dest, ts FROM flights UNION ALL SELECT dest, ts FROM weather
