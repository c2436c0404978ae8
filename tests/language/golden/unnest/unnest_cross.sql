SELECT p.id, t.tag, t.n FROM parcels [RANGE 1 HOUR] p CROSS JOIN UNNEST(p.tags) WITH ORDINALITY AS t (tag, n)
