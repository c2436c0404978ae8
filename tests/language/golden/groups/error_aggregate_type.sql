SELECT SUM(dest) FROM flights
