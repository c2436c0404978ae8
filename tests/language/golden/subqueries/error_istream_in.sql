SELECT * FROM flights WHERE dest IN (ISTREAM (SELECT dest FROM weather))
