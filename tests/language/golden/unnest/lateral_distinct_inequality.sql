SELECT f.carrier, t.x FROM flights f, LATERAL (SELECT DISTINCT wind FROM weather w WHERE w.ts <= f.ts) AS t (x)
