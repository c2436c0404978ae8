INSERT INTO planes SELECT distance, carrier, flight FROM flights
