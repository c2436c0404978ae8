SELECT f.carrier FROM flights f FULL JOIN weather w ON f.dest = w.dest AND w.dest IN (SELECT code FROM airports)
