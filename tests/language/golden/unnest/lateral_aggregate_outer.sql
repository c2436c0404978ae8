SELECT f.carrier, t.x FROM flights f, LATERAL (SELECT SUM(wind) + f.delay FROM weather w WHERE w.dest = f.dest) AS t (x)
