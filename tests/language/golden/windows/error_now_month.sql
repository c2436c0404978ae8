SELECT carrier FROM flights WHERE ts > NOW() - INTERVAL '1' MONTH
