SELECT carrier, (SELECT MAX(wind) FROM weather w WHERE w.dest = f.dest GROUP BY day) AS wind FROM flights f
