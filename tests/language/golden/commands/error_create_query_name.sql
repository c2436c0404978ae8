CREATE QUERY "Alerts" AS SELECT carrier FROM flights
