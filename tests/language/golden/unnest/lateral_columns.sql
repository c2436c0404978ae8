SELECT id, y FROM parcels p CROSS JOIN LATERAL (SELECT p.id * 2 AS y) AS t WHERE y > 3
