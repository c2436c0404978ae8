INSERT INTO weather (dest, wind, ts) ISTREAM (SELECT dest, COUNT(*), MAX(ts) FROM flights GROUP BY dest)
