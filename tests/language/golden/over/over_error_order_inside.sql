SELECT SUM(delay ORDER BY dest) OVER (PARTITION BY carrier) FROM flights
