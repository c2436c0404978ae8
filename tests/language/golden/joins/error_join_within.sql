SELECT 1 FROM flights f JOIN weather w WITHIN 5 MINUTES ON f.dest = w.dest
