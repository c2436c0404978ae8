CREATE VIEW v(a) AS SELECT carrier FROM flights
