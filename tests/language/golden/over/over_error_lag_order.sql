SELECT LAG(delay ORDER BY ts) OVER (PARTITION BY carrier) FROM flights
