SELECT f.delay, wind FROM flights [RANGE 1 HOUR] f JOIN weather [RANGE 1 HOUR] w ON f.dest = w.dest WHERE f.dest = 'ORD'
