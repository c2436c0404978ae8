SELECT * FROM flights WHERE ts > 'yesterday'
