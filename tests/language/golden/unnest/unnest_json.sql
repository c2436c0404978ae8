SELECT part ->> 'name' AS name FROM parcels, UNNEST(CAST(extra AS ARRAY<JSON>)) AS part
