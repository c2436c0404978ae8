WITH late AS (SELECT * FROM flights WHERE delay > 15), n(c, k) AS (SELECT carrier, COUNT(*) FROM late GROUP BY carrier) SELECT c FROM n WHERE k > 2
