ISTREAM (SELECT dest FROM flights
