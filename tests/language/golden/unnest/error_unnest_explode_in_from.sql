SELECT x FROM parcels, EXPLODE(tags) AS x
