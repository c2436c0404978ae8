SELECT carrier, (SELECT COUNT(*) FROM weather w WHERE w.ts <= f.ts) AS before FROM flights f
