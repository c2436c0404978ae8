SELECT actor.login, COUNT(*) FROM (SELECT delay, STRUCT(carrier AS login) AS actor FROM flights [ROWS 5]) GROUP BY delay
