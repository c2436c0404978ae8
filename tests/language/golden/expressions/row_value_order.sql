SELECT 1 FROM flights WHERE (flight, delay, distance) >= (1, 2, 3)
