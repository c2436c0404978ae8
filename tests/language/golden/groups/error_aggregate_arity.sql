SELECT SUM(delay, distance) FROM flights
