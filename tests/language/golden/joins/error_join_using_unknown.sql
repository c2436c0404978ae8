SELECT 1 FROM flights JOIN weather USING (carrier)
