SELECT dest IN (SELECT dest FROM flights) FROM flights
