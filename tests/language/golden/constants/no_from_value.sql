SELECT carrier FROM flights WHERE delay > (SELECT 10 * 3)
