SELECT id FROM parcels p, LATERAL (SELECT x FROM UNNEST(p.tags) AS t(x) WHERE x = 'a') u
