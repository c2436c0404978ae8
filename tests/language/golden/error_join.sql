SELECT * FROM flights f JOIN weather w ON f.day = w.day
