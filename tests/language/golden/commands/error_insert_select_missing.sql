INSERT INTO weather (dest) SELECT dest FROM flights
