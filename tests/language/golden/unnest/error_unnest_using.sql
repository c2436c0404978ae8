SELECT id FROM parcels JOIN UNNEST(tags) AS t (id) USING (id)
