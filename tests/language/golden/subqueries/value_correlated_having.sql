SELECT carrier, (SELECT MAX(wind) FROM weather w WHERE w.dest = f.dest HAVING COUNT(*) > 2) AS wind FROM flights f
