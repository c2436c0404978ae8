SELECT carrier FROM flights f WHERE delay > 30 OR EXISTS (SELECT * FROM weather w WHERE w.dest = f.dest AND w.wind > 60)
