SELECT carrier, AVG(delay) FROM flights
