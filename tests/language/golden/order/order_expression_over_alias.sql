SELECT carrier, delay * 2 AS d FROM flights ORDER BY ABS(d)
