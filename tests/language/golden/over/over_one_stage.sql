SELECT SUM(delay) OVER (PARTITION BY dest), SUM(delay) OVER (PARTITION BY dest) * 2 AS twice, MIN(delay) OVER (PARTITION BY dest) FROM flights
