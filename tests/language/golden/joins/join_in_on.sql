SELECT 1 FROM flights f JOIN weather w ON f.dest IN (SELECT dest FROM flights)
