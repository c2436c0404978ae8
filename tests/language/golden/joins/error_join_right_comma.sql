SELECT 1 FROM flights f, weather w RIGHT JOIN planes p ON p.seats > w.wind
