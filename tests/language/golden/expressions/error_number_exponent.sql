SELECT 1e5.5 FROM flights
