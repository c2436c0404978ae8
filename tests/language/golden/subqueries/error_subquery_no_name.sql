SELECT t.carrier FROM (SELECT carrier FROM flights)
