SELECT 1 FROM fares t JOIN flights f ON f.carrier = t.carrier AND f.dest = t.dest
