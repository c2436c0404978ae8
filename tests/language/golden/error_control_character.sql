SELECT dest FROM flights
