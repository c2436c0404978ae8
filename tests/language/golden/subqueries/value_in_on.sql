SELECT f.carrier FROM flights f JOIN weather w ON f.dest = w.dest AND w.wind > (SELECT AVG(wind) FROM weather)
