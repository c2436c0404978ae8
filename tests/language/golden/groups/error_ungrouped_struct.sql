SELECT actor, COUNT(*) FROM (SELECT STRUCT(carrier AS login) AS actor FROM flights [ROWS 5])
