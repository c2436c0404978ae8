SELECT x FROM parcels, UNNEST(tags) [RANGE 1 HOUR] AS x
