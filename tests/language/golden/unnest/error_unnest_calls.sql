SELECT id, t.tag, t.n FROM parcels, UNNEST(tags) WITH ORDINALITY AS t
