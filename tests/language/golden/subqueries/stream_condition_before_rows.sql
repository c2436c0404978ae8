WITH counts AS (ISTREAM (SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier)) SELECT * FROM (SELECT * FROM counts WHERE n > 3) [ROWS 5]
