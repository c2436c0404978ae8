SELECT (SELECT model FROM planes p WHERE p.flight = f.flight) AS model, COUNT(*) AS n FROM flights f GROUP BY model
