SELECT id, tag FROM parcels, UNNEST(tags) AS t (tag) WHERE id > 7 AND tag <> 'old'
