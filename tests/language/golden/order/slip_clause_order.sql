SELECT * FROM flights LIMIT 5 WHERE delay > 1
