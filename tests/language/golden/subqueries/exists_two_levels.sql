SELECT carrier FROM flights f WHERE EXISTS (SELECT 1 FROM weather w WHERE w.dest = f.dest AND EXISTS (SELECT 1 FROM planes p WHERE p.flight = f.flight AND p.seats > w.wind))
