SELECT x FROM parcels, UNNEST((SELECT ARRAY_AGG(dest) FROM flights)) AS x
