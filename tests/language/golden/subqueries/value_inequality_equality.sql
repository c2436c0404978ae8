SELECT carrier FROM flights f WHERE delay > (SELECT AVG(wind) FROM weather w WHERE w.dest = f.dest AND w.ts < f.ts)
