SELECT 1 FROM flights f OUTER JOIN weather w ON f.dest = w.dest
