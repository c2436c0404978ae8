SELECT x FROM flights f, LATERAL (SELECT f.flight AS x) t (a, b)
