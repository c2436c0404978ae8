SELECT INTERVAL '1 hour' FROM flights
