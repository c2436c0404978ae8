SELECT * FROM flights
