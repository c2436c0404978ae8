SELECT id, EXPLODE(tags) AS tag, EXPLODE(weights) AS weight FROM parcels EMIT CHANGES
