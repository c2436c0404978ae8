SELECT x FROM parcels, UNNEST(tags) AS t (x, y)
