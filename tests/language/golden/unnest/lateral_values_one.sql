SELECT id, v, w FROM parcels LEFT JOIN LATERAL (VALUES (id * 2, 'a')) AS t (v, w) ON TRUE
