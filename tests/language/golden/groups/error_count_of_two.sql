SELECT COUNT(carrier, dest) FROM flights
