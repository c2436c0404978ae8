SELECT dest[2] FROM flights
