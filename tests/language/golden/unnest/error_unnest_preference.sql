SELECT carrier, x FROM flights, UNNEST(ARRAY[1, 2]) AS x WITH PREFERENCE airlines.Estimate.Count(carrier)
