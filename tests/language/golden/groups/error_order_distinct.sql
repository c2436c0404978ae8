SELECT DISTINCT carrier FROM flights ORDER BY delay
