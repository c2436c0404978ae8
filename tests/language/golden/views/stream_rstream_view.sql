CREATE VIEW delayed AS RSTREAM (SELECT dest FROM flights)
