SELECT carrier FROM flights WHERE day >= CURRENT_DATE
