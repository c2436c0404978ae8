SELECT actor.login AS who, COUNT(*) FROM (SELECT STRUCT(carrier AS login) AS actor FROM flights [ROWS 5]) GROUP BY ROLLUP (1)
