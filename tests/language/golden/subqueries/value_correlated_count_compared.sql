SELECT carrier FROM flights f WHERE 0 = (SELECT COUNT(wind) FROM weather w WHERE w.dest = f.dest)
