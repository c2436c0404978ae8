INSERT INTO weather (ts, dest) SELECT ts, dest FROM flights [RANGE 1 HOUR]
