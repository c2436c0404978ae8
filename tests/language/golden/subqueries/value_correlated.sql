SELECT carrier FROM flights f WHERE delay > (SELECT 2 * AVG(delay) FROM flights g WHERE g.carrier = f.carrier AND g.delay > 0)
