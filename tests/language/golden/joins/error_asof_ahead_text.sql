SELECT f.carrier FROM flights f ASOF LEFT JOIN weather w ON f.dest <= w.dest
