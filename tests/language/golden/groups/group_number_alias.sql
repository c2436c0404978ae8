SELECT UPPER(carrier) AS c, flight % 10 AS digit, COUNT(*) FROM flights GROUP BY c, 2
