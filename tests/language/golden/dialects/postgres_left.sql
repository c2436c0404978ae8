SELECT LEFT(dest, 2) FROM flights
