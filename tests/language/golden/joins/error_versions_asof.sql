SELECT 1 FROM flights f ASOF JOIN fares t USING (carrier, dest, since)
