SELECT x FROM flights f, LATERAL (SELECT f.flight AS x) [RANGE 1 HOUR] t
