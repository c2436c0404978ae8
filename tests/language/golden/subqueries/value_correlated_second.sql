SELECT carrier, (SELECT wind FROM weather w WHERE w.dest = f.dest ORDER BY ts DESC LIMIT 1 OFFSET 1) AS wind FROM flights f
