SELECT POSITION('J' IN dest), POSITION('J', dest) FROM flights
