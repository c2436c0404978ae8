SELECT f.carrier, w.wind FROM flights f LEFT JOIN weather w ON f.dest = w.dest AND w.dest IN (SELECT code FROM airports)
