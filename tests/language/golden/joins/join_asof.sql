SELECT f.dest, wind FROM flights f ASOF JOIN weather w ON f.dest = w.dest AND w.ts <= f.ts AND wind > 3
WHERE wind < 50
