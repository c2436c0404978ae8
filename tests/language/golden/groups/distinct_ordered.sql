SELECT DISTINCT carrier, delay * 2 AS d FROM flights ORDER BY delay * 2 DESC, carrier LIMIT 5
