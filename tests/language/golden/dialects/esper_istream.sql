SELECT istream dest FROM flights
