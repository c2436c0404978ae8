SELECT id, city, n FROM parcels CROSS JOIN UNNEST(stops) WITH ORDINALITY AS t (city, at, n)
