SELECT * FROM flights
WHERE delay > 1 AND dest = 5
