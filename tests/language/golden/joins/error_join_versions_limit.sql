SELECT fare FROM (SELECT * FROM flights LIMIT 3) a JOIN fares p USING (carrier, dest)
