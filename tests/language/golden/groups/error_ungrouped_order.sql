SELECT COUNT(*) FROM flights ORDER BY delay
