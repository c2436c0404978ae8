SELECT 1 FROM flights f JOIN weather w ON COUNT(*) > 3
