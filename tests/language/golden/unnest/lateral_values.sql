SELECT id, v FROM parcels p, LATERAL (VALUES (p.id), (p.id + 1)) AS t (v) WHERE id > 3 AND v < 5
