SELECT carrier, delay >= ANY (SELECT wind FROM weather w WHERE w.dest = f.dest) AS o FROM flights f
