SELECT * FROM flights WHERE dest ~ '^J'
