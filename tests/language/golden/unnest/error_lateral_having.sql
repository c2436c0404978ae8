SELECT f.carrier, t.x FROM flights f, LATERAL (SELECT SUM(wind) FROM weather w WHERE w.dest = f.dest HAVING COUNT(*) > 1) AS t (x)
