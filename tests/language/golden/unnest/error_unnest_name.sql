SELECT id, tag FROM parcels, UNNEST(tags)
