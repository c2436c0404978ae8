SELECT id FROM parcels WHERE UNNEST(tags) = 'a'
