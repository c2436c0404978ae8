SELECT f.carrier, g.x FROM flights f JOIN GENERATE_SERIES(1, 2) AS g (x) ON g.x <= f.flight
