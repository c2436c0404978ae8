SELECT carrier FROM (SELECT carrier, ROW_NUMBER() OVER (ORDER BY ts) AS n FROM flights) WHERE n = 3
