SELECT carrier FROM flights WHERE (carrier, flight) IN (VALUES ('AA', 1), ('UA', 2))
