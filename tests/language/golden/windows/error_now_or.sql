SELECT carrier FROM flights WHERE ts > NOW() - INTERVAL '1' HOUR OR delay > 3
