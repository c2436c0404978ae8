SELECT `dest` FROM flights
