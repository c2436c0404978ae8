SELECT 1 FROM flights, (VALUES (carrier)) v (x)
