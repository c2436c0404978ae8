SELECT * FROM flights#time(30 sec)
