SELECT carrier, (SELECT COUNT(*) FROM weather w WHERE w.ts < f.ts) FROM flights f
