SELECT dest FROM flights WHERE ISTREAM(delay) > 3
