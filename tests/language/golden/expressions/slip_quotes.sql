SELECT * FROM flights WHERE dest = ’JFK’
