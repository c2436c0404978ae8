INSERT INTO weather SELECT dest, ts FROM flights
