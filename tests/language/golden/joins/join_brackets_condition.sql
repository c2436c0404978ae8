SELECT f.carrier FROM flights f LEFT JOIN (weather w JOIN planes p ON w.wind > p.seats) ON f.flight = p.flight AND f.delay < w.wind
