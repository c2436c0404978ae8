SELECT carrier FROM flights [PARTITION BY carrier RANGE 1 HOUR]
