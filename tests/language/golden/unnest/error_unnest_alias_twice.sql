SELECT id FROM parcels t, UNNEST(tags) AS t (x)
