SELECT * FROM flights WHERE delay > (SELECT 1 FROM flights)
