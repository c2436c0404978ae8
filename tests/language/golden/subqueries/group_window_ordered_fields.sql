SELECT carrier, n FROM (SELECT carrier, HOP(5 SECONDS, 10 SECONDS) AS w, COUNT(*) AS n FROM flights GROUP BY 1, 2) ORDER BY w, w.start DESC
