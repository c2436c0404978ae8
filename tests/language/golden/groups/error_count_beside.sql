SELECT carrier, COUNT(*) FROM flights
