SELECT * FROM flights WHERE delay > 1 BEGIN NOW - INTERVAL '10 minutes' END NOW
