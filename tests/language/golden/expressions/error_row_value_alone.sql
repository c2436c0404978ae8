SELECT (dest, carrier) FROM flights
