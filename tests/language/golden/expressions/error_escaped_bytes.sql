SELECT E'\xff' FROM flights
