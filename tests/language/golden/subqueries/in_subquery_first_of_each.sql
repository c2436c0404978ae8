SELECT carrier FROM flights f WHERE delay IN (SELECT wind FROM weather w WHERE w.dest = f.dest ORDER BY ts DESC LIMIT 2)
