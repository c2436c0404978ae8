SELECT E'a\''b' FROM flights
