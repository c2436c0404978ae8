SELECT f.carrier, m, n FROM flights f LEFT JOIN LATERAL (SELECT MAX(wind), COUNT(*) FROM weather w WHERE w.dest = f.dest) AS t (m, n) ON TRUE
