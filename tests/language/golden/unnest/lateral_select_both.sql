SELECT f.carrier, w.z FROM flights f, LATERAL (SELECT wind + f.delay AS z FROM weather WHERE weather.dest = f.dest) w WHERE z > 1
