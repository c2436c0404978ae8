SELECT E'\u12' FROM flights
