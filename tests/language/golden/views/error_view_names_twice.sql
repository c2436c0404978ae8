CREATE VIEW v (a, a) AS SELECT dest, delay FROM flights
