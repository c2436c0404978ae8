SELECT x FROM parcels, UNNEST(tags, weights) AS t (x, x)
