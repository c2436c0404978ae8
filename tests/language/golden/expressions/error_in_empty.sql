SELECT * FROM flights WHERE dest IN ()
