SELECT carrier, COUNT(*) AS n, ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC) AS place FROM flights GROUP BY carrier ORDER BY place
