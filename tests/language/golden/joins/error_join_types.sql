SELECT 1 FROM flights f JOIN weather w ON f.flight = w.dest
