CREATE STREAM places AS SELECT dest FROM flights UNION SELECT dest FROM weather
