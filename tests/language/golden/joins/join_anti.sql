SELECT dest FROM flights f ANTI JOIN weather w ON f.dest = w.dest AND wind > 3 AND delay > 5
