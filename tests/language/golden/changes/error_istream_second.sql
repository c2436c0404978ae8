SELECT dest, ISTREAM(delay) FROM flights
