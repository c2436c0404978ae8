SELECT f.delay, wind FROM (SELECT * FROM flights WHERE dest = 'ORD') f FULL JOIN weather w ON f.dest = w.dest
