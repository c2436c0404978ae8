SELECT (flight % 10) * 2 AS x, COUNT(*) FROM flights GROUP BY flight % 10
