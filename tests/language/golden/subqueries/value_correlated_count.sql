SELECT carrier, (SELECT COUNT(*) + 1 FROM weather w WHERE w.dest = f.dest) AS n FROM flights f
