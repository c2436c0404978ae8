SELECT UNNEST(labels) FROM parcels
