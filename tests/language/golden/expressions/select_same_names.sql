SELECT dest, dest, UPPER(dest), UPPER(carrier) FROM flights
