SELECT * FROM flights WHERE 1 < delay < 2
