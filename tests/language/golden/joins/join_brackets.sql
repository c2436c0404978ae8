SELECT f.carrier FROM flights f LEFT JOIN (weather w JOIN planes p ON w.wind > p.seats) ON f.dest = w.dest AND p.model = 'A'
