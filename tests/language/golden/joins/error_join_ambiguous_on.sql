SELECT f.dest FROM flights f JOIN weather w ON dest = wind
