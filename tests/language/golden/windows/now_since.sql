SELECT carrier, delay FROM flights WHERE ts > NOW() - INTERVAL '10' MINUTE AND delay > 3
