SELECT carrier, (SELECT wind FROM weather w WHERE w.dest = f.dest AND w.ts <= f.ts ORDER BY w.ts DESC LIMIT 1) AS wind FROM flights f
