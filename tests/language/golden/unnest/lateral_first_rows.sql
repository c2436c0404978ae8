SELECT f.carrier, t.* FROM flights f CROSS JOIN LATERAL (SELECT wind, ts FROM weather [RANGE 1 DAY] w WHERE w.dest = f.dest ORDER BY ts DESC LIMIT 2) AS t
