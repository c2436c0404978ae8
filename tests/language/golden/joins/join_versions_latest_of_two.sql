SELECT 1 FROM flights f JOIN weather w USING (dest) JOIN fares t ON t.carrier = f.carrier AND t.dest = w.dest
