SELECT "Delay" FROM flights
