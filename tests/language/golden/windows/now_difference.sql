SELECT carrier FROM flights WHERE NOW() - ts <= INTERVAL '10' MINUTE
