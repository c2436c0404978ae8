SELECT * FROM (flights f JOIN weather w ON f.dest = w.dest) SAMPLE(5)
