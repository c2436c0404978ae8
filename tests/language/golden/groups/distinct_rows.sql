SELECT DISTINCT carrier FROM flights
