SELECT COUNT(*), COUNT(*) AS n, MAX(delay), MAX(distance) AS max FROM flights GROUP BY carrier
