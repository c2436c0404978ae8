SELECT f.carrier, p.model FROM flights f JOIN planes p ON f.flight = p.flight AND f.delay > (SELECT AVG(wind) FROM weather w WHERE w.dest = f.dest)
