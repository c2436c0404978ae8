SELECT f.delay, wind FROM flights f RIGHT JOIN (SELECT * FROM weather WHERE wind > 3) w ON f.dest = w.dest AND f.dest = 'ORD'
