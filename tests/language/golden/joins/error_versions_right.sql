SELECT 1 FROM flights f RIGHT JOIN fares t USING (carrier, dest)
