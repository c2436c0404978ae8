SELECT id FROM parcels SEMI JOIN UNNEST(tags) AS x ON x = 'a'
