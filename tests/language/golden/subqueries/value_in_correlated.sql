SELECT carrier, delay NOT IN (SELECT wind FROM weather w WHERE w.dest = f.dest) AS other FROM flights f
