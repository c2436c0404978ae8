SELECT carrier, delay FROM flights ORDER BY delay DESC, carrier FETCH FIRST 3 ROWS WITH TIES
