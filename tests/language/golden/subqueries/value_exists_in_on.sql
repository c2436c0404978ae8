SELECT f.carrier FROM flights f JOIN weather w ON f.dest = w.dest OR EXISTS (SELECT * FROM planes)
