SELECT dest FROM flights f LEFT SEMI JOIN weather w ON f.dest = w.dest AND wind > delay AND wind > 3 AND delay > 5
