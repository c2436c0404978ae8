SELECT f.carrier, model FROM flights f, weather w, planes p
WHERE f.dest = w.dest AND p.flight = f.flight AND seats > 100 AND wind BETWEEN 2 AND delay
