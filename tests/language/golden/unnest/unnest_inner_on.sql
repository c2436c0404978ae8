SELECT id, w FROM parcels JOIN UNNEST(weights) AS w ON w > id
