SELECT f.carrier FROM flights f ASOF LEFT JOIN weather w ON w.day > f.day
