SELECT f.carrier, w.wind FROM flights f, LATERAL (SELECT * FROM weather WHERE weather.dest = f.dest AND wind > f.delay) w WHERE f.delay > 1
