SELECT f.carrier, w.wind FROM flights [RANGE 1 HOUR] f JOIN weather [ROWS 100] w
ON f.dest = w.dest AND f.delay > w.wind AND w.wind > 20 WHERE f.distance < 500 AND f.ts >= w.ts
