SELECT ISTREAM(dest), delay FROM flights
