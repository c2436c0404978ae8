SELECT carrier FROM flights WHERE dest NOT IN (SELECT dest FROM flights WHERE cancelled)
