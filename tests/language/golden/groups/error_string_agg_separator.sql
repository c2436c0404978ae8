SELECT STRING_AGG(dest, carrier) FROM flights
