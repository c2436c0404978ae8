SELECT id, tag FROM parcels, UNNEST(tags) AS t (tag) WHERE ts > NOW() - INTERVAL '5' MINUTE
