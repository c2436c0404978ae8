SELECT carrier FROM flights WHERE delay > (SELECT wind FROM weather UNION SELECT 1e0 FROM weather)
