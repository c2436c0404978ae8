SELECT carrier, (SELECT DISTINCT wind FROM weather w WHERE w.dest = f.dest) AS wind FROM flights f
