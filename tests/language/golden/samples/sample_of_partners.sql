SELECT f.dest FROM (flights f JOIN planes p ON f.delay = p.seats) SAMPLE(10)
