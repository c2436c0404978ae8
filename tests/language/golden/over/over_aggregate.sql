SELECT SUM(delay) OVER (PARTITION BY carrier) FROM flights
