SELECT payload #>> '{a,b}' FROM flights
