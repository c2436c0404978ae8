SELECT carrier FROM flights WHERE NOT (dest IN (SELECT dest FROM flights WHERE cancelled))
