SELECT f.flight, fare FROM flights f LEFT JOIN fares t USING (carrier, dest) WHERE fare IS NULL
