SELECT x FROM parcels, UNNEST(tags) AS t (x) SAMPLE(10)
