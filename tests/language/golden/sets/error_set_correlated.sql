SELECT carrier FROM flights f WHERE EXISTS (SELECT wind FROM weather w WHERE w.dest = f.dest
UNION SELECT wind FROM weather)
