SELECT carrier FROM (SELECT carrier FROM flights UNION ALL SELECT dest FROM flights) [RANGE 1 HOUR]
