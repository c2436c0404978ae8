SELECT carrier, COUNT(*) FROM flights GROUP BY ROLLUP (carrier)
