SELECT carrier, (SELECT MAX(w.wind) + f.delay FROM weather w WHERE w.dest = f.dest) FROM flights f
