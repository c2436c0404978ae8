SELECT x FROM parcels, UNNEST() AS x
