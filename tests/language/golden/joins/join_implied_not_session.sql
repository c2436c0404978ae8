SELECT a.delay FROM flights f JOIN SESSION(flights, INTERVAL '1' MINUTE) a ON a.dest = f.dest WHERE f.dest = 'ORD'
