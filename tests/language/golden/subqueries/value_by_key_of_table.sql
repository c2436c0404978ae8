SELECT carrier, (SELECT model FROM planes p WHERE p.flight = f.flight) FROM flights f
