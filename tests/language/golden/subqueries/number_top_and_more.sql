SELECT carrier, n FROM (SELECT carrier, delay, ROW_NUMBER() OVER (PARTITION BY carrier ORDER BY delay DESC) AS n FROM flights) WHERE delay > 3 AND 10 > n
