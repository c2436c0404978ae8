SELECT id, w FROM parcels LEFT JOIN UNNEST(weights) AS w ON TRUE
