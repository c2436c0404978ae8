SELECT carrier FROM flights WHERE dest IN (SELECT dest FROM weather [RANGE 1 HOUR] WHERE wind > 30)
