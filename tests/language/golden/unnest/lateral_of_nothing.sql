SELECT f.carrier, n FROM flights f, LATERAL (SELECT COUNT(*) FROM weather) AS t (n)
