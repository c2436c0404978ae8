SELECT f.carrier, t.x FROM flights f LEFT JOIN LATERAL (SELECT wind + f.delay FROM weather w WHERE w.dest = f.dest) AS t (x) ON TRUE
