SELECT f.carrier, t.x FROM flights f, LATERAL (SELECT dest FROM weather w WHERE w.dest = f.dest UNION SELECT dest FROM weather) AS t (x)
