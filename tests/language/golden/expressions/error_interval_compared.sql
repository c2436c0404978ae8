SELECT carrier FROM flights WHERE ts - day > 5
