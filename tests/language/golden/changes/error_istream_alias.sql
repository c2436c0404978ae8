SELECT ISTREAM(dest) AS d FROM flights
