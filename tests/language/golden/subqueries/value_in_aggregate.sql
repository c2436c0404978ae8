SELECT SUM(CASE WHEN delay > (SELECT AVG(delay) FROM flights) THEN 1 ELSE 0 END) AS n FROM flights
