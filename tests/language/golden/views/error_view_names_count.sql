CREATE VIEW v (a) AS SELECT dest, delay FROM flights
