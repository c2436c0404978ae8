SELECT p.id, wind FROM weather w JOIN (parcels [RANGE 1 HOUR] p CROSS JOIN UNNEST(p.tags) AS t (tag)) ON dest = tag
