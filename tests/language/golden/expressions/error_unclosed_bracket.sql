SELECT (1 + 2 FROM flights
