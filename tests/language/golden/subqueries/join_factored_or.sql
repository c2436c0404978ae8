SELECT f.carrier FROM flights f, weather w WHERE (f.dest = w.dest AND f.delay > 5 AND w.wind > 3) OR (f.dest = w.dest AND f.delay > 50)
