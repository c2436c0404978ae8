SELECT f.dest FROM flights SAMPLE(1) f JOIN weather [NOW] SAMPLE(5) w ON f.dest = w.dest
