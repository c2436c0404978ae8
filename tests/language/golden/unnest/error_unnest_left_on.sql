SELECT x FROM parcels LEFT JOIN UNNEST(tags) AS x ON x = 'a'
