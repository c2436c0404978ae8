SELECT f.carrier, t.x FROM flights f, LATERAL (SELECT SUM(wind) OVER (ORDER BY ts) FROM weather w WHERE w.dest = f.dest) AS t (x)
