SELECT f.dest FROM flights f JOIN weather w WHERE f.dest = w.dest
