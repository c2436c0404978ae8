SELECT carrier FROM flights f WHERE EXISTS (SELECT wind FROM weather w
UNION SELECT wind FROM weather w WHERE w.wind > f.delay)
