SELECT ISTREAM(carrier) FROM flights UNION SELECT dest FROM flights
