SELECT dest FROM flights f JOIN weather w ON f.dest = w.dest
