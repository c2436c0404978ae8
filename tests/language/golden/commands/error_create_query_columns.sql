CREATE QUERY alerts (carrier) AS SELECT carrier FROM flights
