SELECT X'6' FROM flights
