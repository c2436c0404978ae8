SELECT LENGHT(dest) FROM flights
