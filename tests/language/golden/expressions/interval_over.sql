SELECT carrier, SUM(ts - day) OVER (PARTITION BY carrier ORDER BY ts) AS s, ts - LAG(ts) OVER (PARTITION BY carrier ORDER BY ts) AS gap FROM flights
