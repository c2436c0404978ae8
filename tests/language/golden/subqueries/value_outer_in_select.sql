SELECT (SELECT f.distance + MAX(w.wind) FROM weather w WHERE w.dest = f.dest) AS o FROM flights f
