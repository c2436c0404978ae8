SELECT carrier FROM flights f WHERE delay < (SELECT wind FROM weather w WHERE w.dest = f.dest)
