SELECT f.carrier, t.day, m FROM flights f JOIN LATERAL (SELECT day, MAX(wind) AS m FROM weather w WHERE w.dest = f.dest GROUP BY day) AS t ON t.m > f.delay
