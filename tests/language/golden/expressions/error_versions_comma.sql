SELECT 1 FROM flights f, fares t WHERE f.carrier = t.carrier AND f.dest = t.dest
