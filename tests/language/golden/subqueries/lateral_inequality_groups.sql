SELECT f.carrier, l.n FROM flights f LEFT JOIN LATERAL (SELECT COUNT(*) AS n FROM weather w WHERE w.ts < f.ts) AS l ON TRUE
