SELECT carrier FROM flights f WHERE NOT EXISTS (SELECT * FROM planes p WHERE p.flight = f.flight)
