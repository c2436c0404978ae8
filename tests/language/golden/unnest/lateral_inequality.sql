SELECT f.carrier, t.x FROM flights f, LATERAL (SELECT wind FROM weather w WHERE w.ts <= f.ts ORDER BY ts DESC LIMIT 1) AS t (x)
