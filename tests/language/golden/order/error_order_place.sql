SELECT carrier FROM flights ORDER BY 0
