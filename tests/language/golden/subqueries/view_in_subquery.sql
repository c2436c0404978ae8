SELECT carrier FROM flights WHERE carrier IN (SELECT carrier FROM late)
