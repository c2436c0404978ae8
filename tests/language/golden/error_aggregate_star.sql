SELECT SUM(*) FROM flights
