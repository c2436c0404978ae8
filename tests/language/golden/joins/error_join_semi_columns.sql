SELECT w.wind FROM flights f SEMI JOIN weather w ON f.dest = w.dest
