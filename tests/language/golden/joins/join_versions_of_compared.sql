SELECT wind, fare FROM weather w JOIN flights f USING (dest) JOIN fares t ON t.carrier = f.carrier AND t.dest = f.dest
