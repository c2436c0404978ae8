SELECT carrier FROM flights f WHERE delay > (SELECT MAX(wind) FROM weather w WHERE LOWER(w.dest) = LOWER(f.dest))
