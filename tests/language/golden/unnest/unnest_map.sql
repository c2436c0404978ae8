SELECT id, key, value FROM parcels, UNNEST(labels) WHERE key = 'a'
