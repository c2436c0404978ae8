SELECT wind FROM flights [ROWS 5] f JOIN weather [ROWS 5] w ON f.dest = w.dest WHERE f.dest = 'ORD'
