SELECT carrier -> 'a' = 5 FROM flights
