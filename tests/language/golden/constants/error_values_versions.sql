SELECT 1 FROM (VALUES ('AA', 'LAX')) v (carrier, dest) JOIN fares USING (carrier, dest)
