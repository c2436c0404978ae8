SELECT * FROM flights [RANGE '1 hour 30 minutes']
