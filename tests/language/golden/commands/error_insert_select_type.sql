INSERT INTO weather (ts, dest, wind) SELECT ts, dest, dest FROM flights
