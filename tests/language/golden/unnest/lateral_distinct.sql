SELECT f.carrier, t.x FROM flights f LEFT JOIN LATERAL (SELECT DISTINCT wind FROM weather w WHERE w.dest = f.dest) AS t (x) ON TRUE
