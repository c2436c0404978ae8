SELECT * FROM flights WHERE delay > 1 ORDER BY delay
