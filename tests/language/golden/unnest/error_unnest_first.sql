SELECT x FROM UNNEST(tags) AS x, parcels
