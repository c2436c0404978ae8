SELECT SQRT(dest) FROM flights
