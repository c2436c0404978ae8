CREATE QUERY alerts AS SELECT carrier, delay FROM flights [RANGE 1 HOUR] WHERE delay > 30 EMIT CHANGES INTO alerts
