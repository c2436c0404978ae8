SELECT id, UNNEST(tags) AS tag FROM parcels WHERE id = 1
