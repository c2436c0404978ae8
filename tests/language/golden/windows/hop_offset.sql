SELECT carrier FROM HOP(flights, DESCRIPTOR(ts), '2 minutes', '5 minutes', INTERVAL '7' MINUTES)
