SELECT fare FROM TUMBLE(flights, 1 HOUR) a JOIN fares p USING (carrier, dest)
