SELECT x FROM flights f LEFT JOIN LATERAL (SELECT f.flight AS x) t ON x > 1
