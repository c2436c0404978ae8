SELECT carrier contains FROM flights
