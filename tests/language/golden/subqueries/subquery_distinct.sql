SELECT COUNT(*) FROM (SELECT DISTINCT carrier, dest FROM flights) AS pairs
