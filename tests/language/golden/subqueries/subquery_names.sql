SELECT a, b FROM (SELECT carrier, COUNT(*) FROM flights GROUP BY 1) AS t(a, b) WHERE t.b > 3
