SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier HAVING n > 2 AND carrier <> 'AA'
