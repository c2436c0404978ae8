SELECT COUNT(delay) FROM flights
