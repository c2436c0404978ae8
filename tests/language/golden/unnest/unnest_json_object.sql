SELECT name, part FROM parcels, UNNEST(CAST(extra AS MAP<STRING, JSON>)) AS t (name, part)
