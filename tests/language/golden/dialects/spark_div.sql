SELECT flight DIV 2 FROM flights
