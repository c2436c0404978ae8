SELECT carrier FROM flights f WHERE delay < ANY (SELECT wind FROM weather w WHERE w.dest = f.dest)
