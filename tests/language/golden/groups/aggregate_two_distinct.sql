SELECT COUNT(DISTINCT carrier, dest) FROM flights
