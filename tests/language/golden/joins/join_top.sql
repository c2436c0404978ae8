SELECT f.carrier, w.wind FROM flights f
JOIN (SELECT *, ROW_NUMBER() OVER (PARTITION BY dest ORDER BY ts DESC) AS n FROM weather) w ON f.dest = w.dest AND w.n = 1
