SELECT dest + 1 FROM flights
