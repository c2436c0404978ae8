SELECT dest FROM flights WHERE NOT (delay < 10 AND (cancelled OR dest = 'JFK')) AND NOT NOT flight = 3
