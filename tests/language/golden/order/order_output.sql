SELECT carrier, delay * 2 AS d FROM flights ORDER BY d NULLS FIRST, 1 DESC
