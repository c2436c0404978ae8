SELECT carrier, delay FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY carrier ORDER BY delay DESC, ts) AS n FROM flights) WHERE n <= 10
