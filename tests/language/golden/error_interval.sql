SELECT * FROM flights WHERE ts > ts - INTERVAL '1 hour'
