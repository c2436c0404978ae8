SELECT f.dest FROM flights f JOIN fares SAMPLE(5) t ON f.carrier = t.carrier AND f.dest = t.dest
