SELECT * FROM flights WHERE ts > now
