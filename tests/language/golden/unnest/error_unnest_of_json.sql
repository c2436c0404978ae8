SELECT x FROM parcels, UNNEST(extra) AS x
