SELECT carrier FROM flights WHERE (carrier, dest) IN (SELECT carrier, dest FROM flights GROUP BY 1, 2 HAVING COUNT(*) > 3)
