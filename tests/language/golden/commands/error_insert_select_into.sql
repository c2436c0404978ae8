INSERT INTO weather (ts, dest) SELECT ts, dest FROM flights EMIT CHANGES INTO x
