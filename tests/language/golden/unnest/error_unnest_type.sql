SELECT x FROM parcels, UNNEST(id) AS x
