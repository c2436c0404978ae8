SELECT 1 FROM weather w JOIN TUMBLE(flights, 1 HOUR) f ON w.dest = f.dest JOIN fares t ON t.carrier = f.carrier AND t.dest = f.dest
