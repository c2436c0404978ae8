SELECT carrier FROM flights GROUP BY ROLLUP (carrier) HAVING MAX(ts) < NOW()
