SELECT f.carrier FROM flights f JOIN weather w ON f.delay > ANY (SELECT wind FROM weather)
