SELECT id, tag FROM parcels, LATERAL UNNEST(tags) AS t (tag)
