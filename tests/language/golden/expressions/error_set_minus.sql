SELECT carrier FROM flights MINUS SELECT dest FROM flights
