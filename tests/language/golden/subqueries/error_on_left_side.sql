SELECT f.carrier FROM flights f LEFT JOIN weather w ON f.dest = w.dest AND f.dest IN (SELECT code FROM airports)
