INSERT INTO weather (ts, dest) SELECT MAX(ts), dest FROM flights GROUP BY dest
