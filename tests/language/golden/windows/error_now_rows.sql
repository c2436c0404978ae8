SELECT carrier FROM flights [ROWS 10] WHERE ts > NOW() - INTERVAL '1' HOUR
