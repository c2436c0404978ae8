SELECT 1 FROM flights f RIGHT SEMI JOIN weather w ON f.dest = w.dest
