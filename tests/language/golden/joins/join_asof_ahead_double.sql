SELECT f.carrier FROM flights f ASOF LEFT JOIN weather w ON w.wind >= f.delay AND f.day = w.day
