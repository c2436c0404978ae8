SELECT * FROM (SELECT carrier AS c, delay FROM flights WHERE delay > 3) [PARTITION BY c ROWS 5 WHERE c <> 'UA']
