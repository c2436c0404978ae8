SELECT carrier FROM flights WHERE ts > NOW() - INTERVAL '90000' DAY
